#include "apps/shared/io/private_folder.h"

#include <doctest/doctest.h>

#include <fstream>

namespace tagflow::io {

namespace fs = std::filesystem;

TEST_CASE(
    "private folders are removed with their files, when the last owner ends") {
  fs::path path;
  {
    auto made = PrivateFolder::make();
    REQUIRE(made.ok());
    const PrivateFolder folder = std::move(made).value();
    path = folder.path();
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    std::ofstream(path / "a") << "text";
    CHECK(fs::exists(path / "a"));
    const auto other = PrivateFolder::make();
    REQUIRE(other.ok());
    CHECK(other->path() != path);
  }
  CHECK_FALSE(fs::exists(path));
}

}  // namespace tagflow::io
