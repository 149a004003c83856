#include "graph/beneath.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/temp_folder.h"

namespace tagflow {
namespace {

namespace fs = std::filesystem;

// "model" with a file and a folder, and "secret" beside it.
class Folders {
 public:
  Folders() {
    fs::create_directories(model() / "in");
    std::ofstream(model() / "in" / "file") << "1";
    std::ofstream(top() / "secret") << "2";
  }

  const fs::path& top() const { return folder_.path(); }
  fs::path model() const { return top() / "model"; }
  void link(const char* name, const fs::path& target) const {
    fs::create_symlink(target, model() / name);
  }
  // The path relative to the model, or the code of the error.
  std::string resolved(const fs::path& path) const {
    const auto found = resolve_beneath(model(), path);
    if (!found.ok()) return std::string(code_name(found.status().code()));
    return found->lexically_relative(fs::canonical(model())).string();
  }

 private:
  const testing::TempFolder folder_{"beneath"};
};

TEST_CASE("a path beneath a folder is resolved, whether it exists or not") {
  const Folders folders;
  CHECK(folders.resolved("in/file") == "in/file");
  CHECK(folders.resolved("in/./../in//file") == "in/file");
  CHECK(folders.resolved("") == ".");
  CHECK(folders.resolved("new/deep/file") == "new/deep/file");
  CHECK(folders.resolved(folders.model() / "in") == "in");
}

TEST_CASE("a path that leaves a folder is refused") {
  const Folders folders;
  CHECK(folders.resolved("../secret") == "PermissionDenied");
  CHECK(folders.resolved("in/../../secret") == "PermissionDenied");
  CHECK(folders.resolved("missing/../../secret") == "PermissionDenied");
  CHECK(folders.resolved(folders.top() / "secret") == "PermissionDenied");
  CHECK(folders.resolved(folders.top() / "model2") == "PermissionDenied");
  CHECK(folders.resolved("/") == "PermissionDenied");
  CHECK(folders.resolved(std::string("in\0x", 4)) == "InvalidArgument");
  CHECK(folders.resolved(std::string(300, 'x')) == "InvalidArgument");
}

TEST_CASE("links are followed, and refused if they lead out of the folder") {
  const Folders folders;
  folders.link("near", "in/file");
  folders.link("in/up", "../in");
  folders.link("absolute", folders.model() / "in");
  folders.link("out", "../secret");
  folders.link("in/far", "/etc");
  folders.link("chain", "in/far/passwd");
  folders.link("dangling", "../not_yet");
  folders.link("round", "round");
  CHECK(folders.resolved("near") == "in/file");
  CHECK(folders.resolved("in/up/up/file") == "in/file");
  CHECK(folders.resolved("absolute/file") == "in/file");
  CHECK(folders.resolved("out") == "PermissionDenied");
  CHECK(folders.resolved("in/far/passwd") == "PermissionDenied");
  CHECK(folders.resolved("chain") == "PermissionDenied");
  // Whoever writes to it would make a file outside.
  CHECK(folders.resolved("dangling") == "PermissionDenied");
  CHECK(folders.resolved("round") == "NotFound");
  // ".." after a link leaves its target, not the link.
  CHECK(folders.resolved("in/far/../in/file") == "PermissionDenied");

  const auto refused = resolve_beneath(folders.model(), "chain");
  const fs::path link = fs::canonical(folders.model()) / "in" / "far";
  CHECK(refused.status().message() ==
        "[path] the link \"" + link.string() +
            "\" leads to \"/etc\", which is outside of the folder \"" +
            folders.model().string() + "\"");
}

TEST_CASE("the folder that paths are beneath may itself be behind a link") {
  const Folders folders;
  const fs::path link = folders.top() / "link";
  fs::create_symlink("model", link);
  const auto found = resolve_beneath(link, "in/file");
  REQUIRE(found.ok());
  CHECK(*found == fs::canonical(folders.model()) / "in" / "file");
  CHECK(resolve_beneath(link, folders.model() / "in").ok());
  CHECK(resolve_beneath(folders.top() / "none", "x").status().code() ==
        Code::kNotFound);
}

}  // namespace
}  // namespace tagflow
