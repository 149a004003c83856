#include "apps/io/file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/temp_path.h"

namespace fs = std::filesystem;
using namespace tagflow;

TEST_CASE("a file is replaced as a whole or not at all") {
  const fs::path folder = tagflow::testing::temp_path("replaced");
  fs::create_directories(folder);
  const fs::path file = folder / "file", link = folder / "link";
  REQUIRE(io::write_file(file, "old").ok());
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", link);
  REQUIRE(io::write_file(link, "new and longer").ok());
  CHECK(fs::is_symlink(link));
  CHECK(io::read_file(file).value() == "new and longer");
  CHECK(fs::status(file).permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));

  // Where the new one cannot be written, the old one stays.
  const fs::path temporary =
      fmt::format("{}.tmp-{}", fs::canonical(file).string(), getpid());
  fs::create_directory(temporary);
  CHECK(!io::write_file(file, "x").ok());
  CHECK(io::read_file(file).value() == "new and longer");
  fs::remove(temporary);

  CHECK(io::write_file(folder / "none" / "file", "x").code() ==
        Code::kNotFound);
  CHECK(io::write_file(folder, "x").code() == Code::kPermissionDenied);
  CHECK(io::write_file("/dev/full", "x").code() == Code::kDataLoss);
  CHECK(fs::exists("/dev/full"));
  fs::remove_all(folder);
}
