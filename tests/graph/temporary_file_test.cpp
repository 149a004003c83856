#include "graph/temporary_file.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/temp_folder.h"

namespace tagflow {
namespace {

namespace fs = std::filesystem;

using Kind = TemporaryFile::Kind;

struct Folder : testing::TempFolder {
  Folder() : TempFolder("temporary") {}
  std::string target() const { return (path() / "x.npy").string(); }
};

std::unique_ptr<TemporaryFile> make(const Folder& folder, Kind kind) {
  auto made = std::make_unique<TemporaryFile>(folder.target(), kind, 0777);
  REQUIRE(made->error() == 0);
  return made;
}

TEST_CASE("writers of one file at the same time have different names") {
  for (const Kind kind : {Kind::kFile, Kind::kFolder}) {
    const Folder folder;
    const auto first = make(folder, kind), second = make(folder, kind);
    CHECK(first->path() == folder.target() + ".tmp-tagflow-0");
    CHECK(second->path() == folder.target() + ".tmp-tagflow-1");
    CHECK(fs::exists(first->path()));
    CHECK(fs::is_directory(second->path()) == (kind == Kind::kFolder));
  }
}

TEST_CASE("the next writer removes what a killed process has left") {
  for (const Kind kind : {Kind::kFile, Kind::kFolder}) {
    const Folder folder;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const TemporaryFile made(folder.target(), kind, 0777);
      std::ofstream(kind == Kind::kFile ? made.path() : made.path() + "/half")
          << "half";
      raise(SIGKILL);
    }
    REQUIRE(waitpid(child, nullptr, 0) == child);
    const fs::path left = folder.target() + ".tmp-tagflow-0";
    REQUIRE(!fs::is_empty(left));
    const auto made = make(folder, kind);
    CHECK(made->path() == left);
    CHECK(fs::is_empty(left));
    CHECK(std::distance(fs::directory_iterator(left.parent_path()), {}) == 1);
  }
}

TEST_CASE("what is not a temporary file of ours is not removed") {
  const Folder folder;
  const std::string link = folder.target() + ".tmp-tagflow-0";
  const std::string other = folder.target() + ".tmp-tagflow-x";
  std::ofstream(folder.target()) << "whole";
  std::ofstream(other) << "other";
  fs::create_symlink("x.npy", link);
  CHECK(make(folder, Kind::kFile)->path() ==
        folder.target() + ".tmp-tagflow-1");
  CHECK(fs::is_symlink(link));
  CHECK(fs::file_size(folder.target()) == 5);
  CHECK(fs::file_size(other) == 5);
}

TEST_CASE("a temporary file that cannot be made says why") {
  const Folder folder;
  CHECK(TemporaryFile(folder.target() + "/none/x", Kind::kFile, 0666).error() ==
        ENOENT);
  CHECK(TemporaryFile(folder.target() + "/none", Kind::kFolder, 0777).error() ==
        ENOENT);
}

TEST_CASE("a temporary name is told from others") {
  CHECK(is_temporary_name("x.npy.tmp-tagflow-0"));
  CHECK(is_temporary_name("x.tmp-tagflow-12"));
  for (const char* name : {"x.npy", "x.tmp-tagflow-", "x.tmp-tagflow-1.index",
                           "x.tmp-tagflow-1a", "x.tmp-1-2", ""})
    CHECK_FALSE(is_temporary_name(name));
}

}  // namespace
}  // namespace tagflow
