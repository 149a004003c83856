#include "devices/files/saved_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "devices/files/folder_lock.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/files/kept_file.h"
#include "tests/failing_new.h"

namespace tagflow::checkpoint {
namespace {

void make(const TempFolder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) std::ofstream(folder.path(name)) << "x";
}

TEST_CASE("a bundle is removed with its shards, and nothing beside it") {
  const TempFolder folder("removed");
  const std::vector<std::string> others = {"m-1.data", "m-1.data-notes",
                                           "m-1.meta", "m-10.index",
                                           "m-1x.data-00000-of-00001"};
  make(folder, others);
  make(folder,
       {"m-1.index", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002"});
  REQUIRE(remove_bundle(folder.path("m-1"), {}).ok());
  CHECK(folder.names() == others);
  // What is left of one whose index is gone, too; and nothing is not an error.
  make(folder, {"m-1.data-00000-of-00001"});
  REQUIRE(remove_bundle(folder.path("m-1"), {}).ok());
  REQUIRE(remove_bundle(folder.path("none/m-1"), {}).ok());
  CHECK(folder.names() == others);
}

TEST_CASE("a bundle whose index cannot be removed keeps its shards") {
  const TempFolder folder("kept");
  const std::vector<std::string> all = {"m-1.data-00000-of-00002",
                                        "m-1.data-00001-of-00002", "m-1.index"};
  make(folder, all);
  KeptFile files(local_files(), ".index");
  CHECK(remove_bundle(folder.path("m-1"), {&files}).code() ==
        Code::kPermissionDenied);
  CHECK(folder.names() == all);
  // A shard that cannot be removed is an error, too, and can be removed later.
  KeptFile kept(local_files(), ".data-00000-of-00002");
  CHECK(remove_bundle(folder.path("m-1"), {&kept}).code() ==
        Code::kPermissionDenied);
  CHECK(std::ranges::count(folder.names(), "m-1.index") == 0);
  REQUIRE(remove_bundle(folder.path("m-1"), {}).ok());
  CHECK(folder.names().empty());
}

TEST_CASE("temporary files of killed saves are removed, and no others") {
  const TempFolder folder("temporary");
  const std::vector<std::string> others = {"checkpoint",
                                           "m-1.index",
                                           "m-1.index.tmp-",
                                           "m-1.tmp-1",
                                           "m-1.tmp-tagflow-2.index",
                                           "other.tmp-tagflow-2"};
  make(folder, others);
  make(folder, {"checkpoint.tmp-tagflow-0", "m-1.index.tmp-tagflow-3",
                "m-1.data-00000-of-00001.tmp-tagflow-12"});
  remove_temporary_files(folder.path(""), "m-", {});
  CHECK(folder.names() == [&] {
    auto sorted = others;
    std::ranges::sort(sorted);
    return sorted;
  }());
}

TEST_CASE("a folder is locked by one at a time") {
  const TempFolder folder("locked");
  auto first = FolderLock::take(folder.path(""));
  REQUIRE(first.ok());
  CHECK((*first)->is_exclusive());
  const auto second = FolderLock::take(folder.path(""));
  CHECK(second.status().code() == Code::kFailedPrecondition);
  // Who was refused has not taken the lock from the first.
  CHECK(FolderLock::take(folder.path("")).status().code() ==
        Code::kFailedPrecondition);
  CHECK((*first)->check_place().ok());
  *first = nullptr;
  CHECK(FolderLock::take(folder.path("")).ok());
  CHECK(FolderLock::take(folder.path("none"))
            .status()
            .message()
            .find("cannot open the folder") != std::string::npos);
}

TEST_CASE("a lock knows that its folder was moved, and when it is back") {
  const TempFolder folder("moved");
  std::filesystem::create_directory(folder.path("a"));
  const auto lock = FolderLock::take(folder.path("a"));
  REQUIRE(lock.ok());
  std::filesystem::rename(folder.path("a"), folder.path("b"));
  CHECK((*lock)->check_place().code() == Code::kFailedPrecondition);
  // Another one in its place is not its own.
  std::filesystem::create_directory(folder.path("a"));
  CHECK((*lock)->check_place().code() == Code::kFailedPrecondition);
  const auto other = FolderLock::take(folder.path("a"));
  REQUIRE(other.ok());
  CHECK((*other)->is_exclusive());
  CHECK(FolderLock::take(folder.path("b")).status().code() ==
        Code::kFailedPrecondition);
  std::filesystem::remove(folder.path("a"));
  std::filesystem::rename(folder.path("b"), folder.path("a"));
  CHECK((*lock)->check_place().ok());
}

TEST_CASE("a folder that cannot be written to is not locked") {
  const TempFolder folder("read_only");
  REQUIRE(::chmod(folder.path("").c_str(), 0555) == 0);
  // Root may write to any.
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (is_root) REQUIRE(::seteuid(kNobody) == 0);
  const Status status = FolderLock::take(folder.path("")).status();
  if (is_root) REQUIRE(::seteuid(0) == 0);
  REQUIRE(::chmod(folder.path("").c_str(), 0755) == 0);
  CHECK(status.code() == Code::kPermissionDenied);
  CHECK(status.message().find("cannot write to the folder") !=
        std::string::npos);
}

TEST_CASE("a folder lock that lacks memory leaves no file behind") {
  const TempFolder folder("a_name_that_needs_memory_of_its_own");
  make(folder, {"m-1.index", "m-1.data-00000-of-00001"});
  const auto names = folder.names();
  bool failed = true;
  for (int64_t k = 1; failed; ++k) {
    FailAllocation fail(k);
    try {
      static_cast<void>(names_in(folder.path("")));
      const auto lock = FolderLock::take(folder.path(""));
      static_cast<void>(AtomicFile::create(folder.path("f"), {}));
    } catch (const std::bad_alloc&) {
    }
    failed = fail.failed();
    fail.stop();
    CHECK(FolderLock::take(folder.path("")).ok());
    CHECK(folder.names() == names);
  }
}

}  // namespace
}  // namespace tagflow::checkpoint
