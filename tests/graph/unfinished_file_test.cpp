#include "graph/unfinished_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "tests/temp_folder.h"

namespace tagflow {
namespace {

namespace fs = std::filesystem;

void make(const fs::path& path) { std::ofstream(path) << "half"; }

struct Folder : testing::TempFolder {
  Folder() : TempFolder("unfinished") {}
};

TEST_CASE("files are removed while they are unfinished, and others are not") {
  const Folder folder;
  const fs::path half = folder.path() / "half", whole = folder.path() / "whole",
                 other = folder.path() / "other";
  const UnfinishedFile note(half.native());
  std::optional<UnfinishedFile> finished(whole.native());
  const UnfinishedFile missing((folder.path() / "missing").native());
  for (const fs::path& path : {half, whole, other}) make(path);
  finished.reset();
  remove_unfinished_files();
  CHECK(!fs::exists(half));
  CHECK(fs::exists(whole));
  CHECK(fs::exists(other));
  // The note is used up.
  make(half);
  remove_unfinished_files();
  CHECK(fs::exists(half));
}

TEST_CASE("an unfinished folder is removed with the files that are noted") {
  const Folder folder;
  const fs::path inner = folder.path() / "inner";
  const UnfinishedFile notes[] = {
      UnfinishedFile((inner / "a").native()),
      UnfinishedFile(inner.native()),
      UnfinishedFile((folder.path() / "b").native()),
      UnfinishedFile(folder.path().native()),
  };
  fs::create_directories(inner);
  make(inner / "a");
  make(folder.path() / "b");
  SUBCASE("which are all") {
    remove_unfinished_files();
    CHECK(!fs::exists(folder.path()));
  }
  SUBCASE("unless it has another one") {
    make(folder.path() / "c");
    remove_unfinished_files();
    CHECK(fs::exists(folder.path() / "c"));
    CHECK(!fs::exists(inner));
  }
}

TEST_CASE("threads note files at the same time") {
  const Folder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const fs::path path = folder.path() / std::to_string(t);
      for (int i = 0; i < 1000; ++i) {
        const UnfinishedFile note(path.native());
        if (i % 100 == t) make(path);
      }
    });
  for (int i = 0; i < 100; ++i) remove_unfinished_files();
  for (std::thread& thread : threads) thread.join();
  remove_unfinished_files();
  for (int t = 0; t < 4; ++t) {
    const fs::path path = folder.path() / std::to_string(t);
    const UnfinishedFile note(path.native());
    make(path);
    remove_unfinished_files();
    CHECK(!fs::exists(path));
  }
}

}  // namespace
}  // namespace tagflow
