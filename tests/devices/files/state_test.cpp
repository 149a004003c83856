#include "devices/files/state.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "tests/devices/files/examples.h"
#include "tests/failing_new.h"

namespace tagflow::checkpoint {
namespace {

namespace fs = std::filesystem;

void save(const std::string& prefix, int shards = 1) {
  auto writer = BundleWriter::create(prefix, shards, {nullptr, false});
  REQUIRE(writer.ok());
  REQUIRE((*writer)->add("x", example(DataType::kFloat, {10})).ok());
  REQUIRE((*writer)->finish().ok());
  REQUIRE((*writer)->publish().ok());
}

// The name of the newest one; or the error.
std::string newest_in(const TempFolder& folder) {
  const auto newest = find_newest_checkpoint(folder.path(""));
  return newest.ok() ? fs::path(newest->prefix).filename().string()
                     : newest.status().to_string();
}

void set_age(const std::string& path, int seconds) {
  fs::last_write_time(
      path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

TEST_CASE("TensorFlow's file of checkpoints is read, and written alike") {
  const std::string folder = recorded_path("");
  const auto state = read_checkpoint_state(folder);
  REQUIRE(state.ok());
  CHECK(state->newest == recorded_path("types"));
  CHECK(state->all ==
        std::vector{recorded_path("shapes"), recorded_path("types")});
  CHECK(state->timestamps == std::vector{1.5, 2.5});
  const TempFolder copy("state");
  CheckpointState moved = *state;
  moved.newest = copy.path("types");
  moved.all = {copy.path("shapes"), copy.path("types")};
  REQUIRE(write_checkpoint_state(copy.path(""), moved, {}).ok());
  CHECK(bytes_of(copy.path("checkpoint")) ==
        bytes_of(recorded_path("checkpoint")));
  CHECK(copy.names() == std::vector<std::string>{"checkpoint"});
  moved.newest = "/elsewhere/x";
  REQUIRE(write_checkpoint_state(copy.path(""), moved, {}).ok());
  CHECK(read_checkpoint_state(copy.path(""))->newest == "/elsewhere/x");
}

TEST_CASE("a text that names no checkpoints is refused") {
  const TempFolder folder("state_broken");
  CHECK(read_checkpoint_state(folder.path("")).status().code() ==
        Code::kNotFound);
  std::ofstream(folder.path("checkpoint")) << "model_checkpoint_path: 7";
  const auto state = read_checkpoint_state(folder.path(""));
  CHECK(state.status().code() == Code::kInvalidArgument);
  CHECK(state.status().message().find("names no checkpoints") !=
        std::string::npos);
}

TEST_CASE("a list of checkpoints that cannot be written is an error") {
  const TempFolder folder("short");
  CheckpointState state;
  for (int i = 0; i < 9; ++i) {
    state.all.push_back(
        folder.path(fmt::format("a_name_that_is_long_enough-{}", i)));
    state.timestamps.push_back(i);
  }
  for (int64_t k = 1;; ++k) {
    FailAllocation fail(k);
    try {
      static_cast<void>(write_checkpoint_state(folder.path(""), state, {}));
    } catch (const std::bad_alloc&) {
    }
    if (!fail.failed()) break;
  }
  CHECK(read_checkpoint_state(folder.path(""))->all == state.all);
}

TEST_CASE("a search for checkpoints without memory gives no older one") {
  const TempFolder folder("short_search");
  for (const std::string name : {"m-1", "m-2"}) save(folder.path(name));
  for (int64_t k = 1;; ++k) {
    std::string newest;
    FailAllocation fail(k);
    try {
      newest = newest_in(folder);
    } catch (const std::bad_alloc&) {
    }
    const bool failed = fail.failed();
    fail.stop();
    if (newest != "m-2") CHECK((newest.empty() || !newest.starts_with("m-")));
    if (!failed) break;
  }
}

TEST_CASE("the newest checkpoint of one series is that of the last step") {
  const TempFolder folder("series");
  for (const std::string name : {"m-4", "m-10", "m-9", "other-99"})
    save(folder.path(name));
  set_age(folder.path("m-4.index"), 1);
  set_age(folder.path("m-9.index"), 5);
  set_age(folder.path("m-10.index"), 20);
  set_age(folder.path("other-99.index"), 30);
  CHECK(newest_in(folder) == "m-10");
  fs::remove(folder.path("m-10.index"));
  CHECK(newest_in(folder) == "m-9");
  set_age(folder.path("other-99.index"), 0);
  CHECK(newest_in(folder) == "other-99");
}

TEST_CASE("the newest whole checkpoint is found, not a part of one") {
  const TempFolder folder("newest");
  CHECK(newest_in(folder).starts_with("NotFound: [checkpoint] there is no "));
  for (const std::string name : {"a", "b", "c"}) save(folder.path(name));
  set_age(folder.path("a.index"), 30);
  set_age(folder.path("b.index"), 20);
  set_age(folder.path("c.index"), 10);
  CHECK(newest_in(folder) == "c");
  // The file that names one has the say.
  CheckpointState state;
  state.newest = folder.path("b");
  REQUIRE(write_checkpoint_state(folder.path(""), state, {}).ok());
  CHECK(newest_in(folder) == "b");
  CHECK(find_newest_checkpoint(folder.path(""))->damaged.empty());
  // One byte is missing.
  fs::resize_file(folder.path("b.data-00000-of-00001"), 39);
  CHECK(newest_in(folder) == "c");
  fs::remove(folder.path("c.data-00000-of-00001"));
  CHECK(newest_in(folder) == "a");
  const auto damaged = find_newest_checkpoint(folder.path(""))->damaged;
  REQUIRE(damaged.size() >= 2);
  CHECK(damaged[0].what.find("b.data-00000-of-00001\" has 39 bytes") !=
        std::string::npos);
  CHECK(damaged[1].what.find("c.data-00000-of-00001") != std::string::npos);
  fs::resize_file(folder.path("a.index"), 10);
  const std::string none = newest_in(folder);
  CHECK(none.starts_with(
      "DataLoss: [checkpoint] there is no complete checkpoint in"));
  CHECK(none.find("has 39 bytes") != std::string::npos);
  // A list is not an empty folder either.
  for (const char* name : {"a.index", "b.index", "c.index"})
    fs::remove(folder.path(name));
  CHECK(newest_in(folder).starts_with("DataLoss: "));
  fs::remove(folder.path("checkpoint"));
  CHECK(newest_in(folder).starts_with("NotFound: "));
}

// No more files can be opened than that, until its end.
class FewFiles {
 public:
  explicit FewFiles(rlim_t count) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    const rlimit few = {rlim_t(next) + count, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_CASE("an error other than damage makes no older checkpoint the newest") {
  const TempFolder folder("few");
  save(folder.path("m-1"));
  save(folder.path("m-2"), 9);
  {
    const FewFiles none(0);
    CHECK(newest_in(folder).starts_with("ResourceExhausted: "));
  }
  {
    const FewFiles one(1);  // at a time, whatever there is
    CHECK(newest_in(folder) == "m-2");
  }
  fs::create_directory(folder.path("m-3.index"));
  CHECK(newest_in(folder).starts_with("InvalidArgument: "));
}

TEST_CASE("a name on the list that leads to no checkpoint is passed over") {
  const TempFolder folder("misled");
  const std::string locked = folder.path("locked");
  fs::create_directory(locked);
  fs::create_directory(folder.path("inner"));
  fs::copy(recorded_path("v1"), folder.path("inner/v1"));
  save(locked + "/m-9");
  fs::permissions(locked, fs::perms::none);
  // Root may look anywhere.
  const bool is_root = ::geteuid() == 0;
  const auto newest = [&] {
    constexpr uid_t kNobody = 65534;
    if (is_root) REQUIRE(::seteuid(kNobody) == 0);
    std::string name = newest_in(folder);
    if (is_root) REQUIRE(::seteuid(0) == 0);
    return name;
  };
  const auto name_newest = [&](const std::string& name) {
    std::ofstream(folder.path("checkpoint"))
        << "model_checkpoint_path: \"" << name << "\"";
  };
  const std::pair<std::string, std::string> names[] = {
      {std::string(300, 'x'), "InvalidArgument: "},
      {"inner/v1", "Unimplemented: "},
      {"locked/m-9", "PermissionDenied: "},
      {"/nowhere/m-9", "DataLoss: "},
  };
  // If there is no other, its own error says more.
  for (const auto& [name, code] : names) {
    name_newest(name);
    CHECK(newest().starts_with(code));
  }
  save(folder.path("m-1"));
  save(folder.path("m-2"));
  fs::resize_file(folder.path("m-2.data-00000-of-00001"), 39);
  for (const auto& [name, code] : names) {
    name_newest(name);
    CHECK(newest() == "m-1");
    const auto found = find_newest_checkpoint(folder.path(""));
    if (name != "locked/m-9") CHECK(found->damaged.size() == 2);
  }
  // What the folder has itself is another matter: it may be read later.
  fs::create_directory(folder.path("m-3.index"));
  for (const char* name : {"m-3", "inner/v1"}) {
    name_newest(name);
    CHECK(newest().starts_with("InvalidArgument: "));
  }
  fs::permissions(locked, fs::perms::owner_all);
}

}  // namespace
}  // namespace tagflow::checkpoint
