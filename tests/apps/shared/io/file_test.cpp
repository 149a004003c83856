#include "apps/shared/io/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <thread>

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

  // No temporary file stays.
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 2);
  // What has two names keeps them, and a name that leaves no room for more is
  // written over.
  fs::create_hard_link(file, folder / "other");
  REQUIRE(io::write_file(file, "both").ok());
  CHECK(io::read_file(folder / "other").value() == "both");
  const fs::path long_name = folder / std::string(250, 'n');
  for (const char* text : {"first", "second"})
    REQUIRE(io::write_file(long_name, text).ok());
  CHECK(io::read_file(long_name).value() == "second");

  CHECK(io::write_file(folder / "none" / "file", "x").code() ==
        Code::kNotFound);
  CHECK(io::check_writable(folder / "none" / "file").code() == Code::kNotFound);
  CHECK(io::check_writable(folder / "new").ok());
  CHECK_FALSE(io::check_writable(folder / "file" / "new").ok());
  CHECK_FALSE(io::check_writable(folder / std::string(300, 'n')).ok());
  fs::create_symlink("none/file", folder / "dangling");
  CHECK_FALSE(io::check_writable(folder / "dangling").ok());
  fs::create_symlink("loop", folder / "loop");
  CHECK_FALSE(io::check_writable(folder / "loop").ok());
  CHECK(io::read_file(folder / "loop").status().code() ==
        Code::kPermissionDenied);
  CHECK(io::write_file(folder, "x").code() == Code::kPermissionDenied);
  CHECK(io::write_file("/dev/full", "x").code() == Code::kResourceExhausted);
  CHECK(fs::exists("/dev/full"));
  fs::remove_all(folder);
}

TEST_CASE("a file that is read whole takes little more memory than its bytes") {
  const fs::path file = tagflow::testing::temp_path("whole");
  // Of 0 bytes, of less than a piece, of whole pieces, and of a rest.
  for (const size_t size : {0, 10, 1 << 20, 3 << 20, (5 << 20) + 7}) {
    CAPTURE(size);
    REQUIRE(io::write_file(file, std::string(size, 'x')).ok());
    const Result<std::string> bytes = io::read_file(file, size);
    REQUIRE(bytes.ok());
    CHECK(*bytes == std::string(size, 'x'));
    CHECK(bytes->capacity() <= size + 32);
    if (size == 0) continue;
    const Status status = io::read_file(file, size - 1).status();
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(status.message().find("is larger than") != std::string::npos);
  }
  fs::remove(file);
}

TEST_CASE("a pipe is read where pipes are, and refused elsewhere") {
  const fs::path pipe = tagflow::testing::temp_path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  // Nobody writes to it.
  const Status refused = io::read_file(pipe).status();
  CHECK(refused.code() == Code::kInvalidArgument);
  CHECK(refused.message() ==
        "[file] \"" + pipe.string() + "\" is not a regular file");
  std::thread writer([&] { CHECK(io::write_file(pipe, "text").ok()); });
  CHECK(io::read_file(pipe, 100, io::Pipes::kRead).value() == "text");
  writer.join();
  fs::remove(pipe);
}
