#include "net/config/secret_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/net/link/loopback.h"
#include "tests/temp_folder.h"

namespace tagflow::net {
namespace {

namespace fs = std::filesystem;

// A file with this text, and the mode of secrets.
fs::path write_private(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  return path;
}

}  // namespace

TEST_CASE("a new secret is for its owner alone, and differs from the last") {
  const testing::TempFolder folder("new_secret");
  const fs::path path = folder.path() / "s";
  REQUIRE(write_new_secret(path).ok());
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  const auto first = read_secret(path);
  REQUIRE(first.ok());
  CHECK(first->size() == 64);
  // The place of a file that everybody can read, or of a link, is taken.
  fs::permissions(path, fs::perms::all);
  REQUIRE(write_new_secret(path).ok());
  const auto second = read_secret(path);
  REQUIRE(second.ok());
  CHECK(*first != *second);
  CHECK(write_new_secret(folder.path() / "no" / "s").code() == Code::kNotFound);
}

TEST_CASE("a secret is the file without the newline at its end") {
  const testing::TempFolder folder("secret");
  const fs::path path = folder.path() / "s";
  for (const char* text : {"a b", "a b\n", "a b\r\n"}) {
    const auto secret = read_secret(write_private(path, text));
    REQUIRE(secret.ok());
    CHECK(*secret == "a b");
  }
}

TEST_CASE("a secret that others can read, or that is none, is refused") {
  const testing::TempFolder folder("no_secret");
  const fs::path path = folder.path() / "s";
  CHECK(read_secret(path).status().code() == Code::kNotFound);
  CHECK(read_secret(folder.path()).status().code() == Code::kInvalidArgument);
  CHECK(mentions(read_secret(write_private(path, "\n")).status(), "is empty"));
  CHECK(read_secret(write_private(path, std::string(4097, 'a')))
            .status()
            .code() == Code::kResourceExhausted);
  write_private(path, "hidden words");
  for (const fs::perms more : {fs::perms::group_read, fs::perms::others_read,
                               fs::perms::others_write}) {
    fs::permissions(path, fs::perms::owner_read | more);
    const Status status = read_secret(path).status();
    CHECK(status.code() == Code::kPermissionDenied);
    CHECK(mentions(status, path.string()));
    CHECK(mentions(status, "chmod 600"));
    CHECK_FALSE(mentions(status, "hidden"));
  }
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(read_secret(folder.path() / "pipe").status().code() ==
        Code::kInvalidArgument);
}

}  // namespace tagflow::net
