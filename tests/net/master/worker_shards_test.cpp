// Checkpoints of a cluster that its workers write.
#include "actors/checkpoint/worker_shards.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/scoped_files.h"
#include "tests/net/master/worker_shards.h"

namespace tagflow::net {
namespace {

namespace fs = std::filesystem;
using namespace tagflow::graph;  // NOLINT: for tests
using namespace testing;         // NOLINT: likewise
using actors::Saver;
using actors::SaverOptions;
using actors::Session;
using actors::ShardWriters;
using graph::testing::contains;

// What a session of this process has after it has restored the newest one.
std::vector<Tensor> restored(const Folder& folder, uint32_t tasks, int64_t step,
                             int64_t last_size = 1000) {
  const Training here(tasks, /*is_pinned=*/false, last_size);
  const auto session = here.session(nullptr);
  CHECK(must(actors::restore_checkpoint(*session, folder.path())).step == step);
  return here.values(*session);
}

// The system refuses files that are larger.
class SmallFiles {
 public:
  explicit SmallFiles(uint64_t bytes) {
    before_ = ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit_) == 0);
    const rlimit small{bytes, limit_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    ::signal(SIGXFSZ, before_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit limit_{};
  void (*before_)(int) = nullptr;
};

// Files of a process that does not see those that others are writing, or sees
// an earlier state of them.
class OtherFiles final : public checkpoint::ScopedFiles {
 public:
  enum class Sees { kNothing, kOlder };
  explicit OtherFiles(Sees sees)
      : ScopedFiles(FileScope::everywhere(), FileScope::everywhere()),
        sees_(sees) {}
  Result<std::unique_ptr<checkpoint::ReadableFile>> open(
      const std::string& path) override {
    if (contains(path, "-trial") || !contains(path, ".tmp-tagflow-"))
      return ScopedFiles::open(path);
    if (sees_ == Sees::kNothing)
      return error(Code::kNotFound, "cannot open \"{}\"", path);
    fs::resize_file(path, fs::file_size(path) / 2);
    return ScopedFiles::open(path);
  }

 private:
  const Sees sees_;
};

}  // namespace

TEST_CASE("workers write their variables, which are restored bit for bit") {
  for (const bool has_tls : {false, true})
    for (const uint32_t tasks : {1u, 2u, 3u}) {
      CAPTURE(has_tls);
      CAPTURE(tasks);
      const Folder folder("bits");
      const Workers workers(all_in(folder, tasks), has_tls);
      const Training training(tasks, /*is_pinned=*/true);
      const auto session = training.session(workers.cluster);
      run(*session, "init");
      run(*session, "step", 3);
      const auto saver = make_saver(*session, by_workers(folder));
      save(*saver, 3);
      const std::vector<Tensor> third = training.values(*session);
      run(*session, "step");
      const std::vector<Tensor> fourth = training.values(*session);
      // One shard of the master, and one of each worker.
      const auto file =
          must(checkpoint::BundleReader::open(folder.path("model.ckpt-3")));
      CHECK(file->num_shards() == int(tasks) + 1);
      for (uint32_t task = 0; task < tasks; ++task)
        for (const std::string name : {"w", "count"}) {
          const auto* const entry = file->find(name + std::to_string(task));
          REQUIRE(entry != nullptr);
          CHECK(entry->shard == int(task) + 1);
        }
      CHECK(!folder.has_temporary());
      check_same(restored(folder, tasks, 3), third);
      // Random numbers go on, too.
      CHECK(must(saver->restore())->step == 3);
      check_same(training.values(*session), third);
      run(*session, "step");
      check_same(training.values(*session), fourth);
    }
}

TEST_CASE("a shard has the values of its border, whatever steps do meanwhile") {
  const Folder folder("border");
  const Workers workers(all_in(folder, 2));
  constexpr int64_t kLarge = 1 << 20;
  const Training training(2, true, kLarge);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  const auto saver = make_saver(*session, by_workers(folder));
  for (int64_t step = 1; step <= 6; ++step) {
    run(*session, "step");
    const std::vector<Tensor> now = training.values(*session);
    must(saver->save(step));
    run(*session, "step", 3);
    must(saver->wait());
    check_same(restored(folder, 2, step, kLarge), now);
  }
}

TEST_CASE("a worker without leave writes nothing, and is named") {
  const Folder folder("leave"), other("other");
  for (const std::string& allowed : {std::string(), other.path()}) {
    CAPTURE(allowed);
    const Workers workers({folder.path(), allowed});
    const Training training(2, true);
    const auto session = training.session(workers.cluster);
    run(*session, "init");
    const Status refused = Saver::create(*session, by_workers(folder)).status();
    INFO(refused.to_string());
    CHECK(refused.code() == Code::kPermissionDenied);
    CHECK(contains(refused.message(), "/job:worker/task:1"));
    SaverOptions any = by_workers(folder);
    any.writers = ShardWriters::kAny;
    const auto saver = make_saver(*session, any);
    CHECK(saver->why_not_workers().code() == Code::kPermissionDenied);
    save(*saver, 1);
    CHECK(must(checkpoint::BundleReader::open(folder.path("model.ckpt-1")))
              ->num_shards() == 1);
    check_same(restored(folder, 2, 1), training.values(*session));
    CHECK(other.names().empty());
    CHECK(!folder.has_temporary());
    fs::remove_all(folder.path());
    fs::create_directories(folder.path());
  }
}

TEST_CASE("a full disk at one worker fails the save, and not the steps") {
  const Folder folder("full");
  const Workers workers(all_in(folder, 3));
  constexpr int64_t kLarge = 1 << 18;  // a MiB
  const Training training(3, true, kLarge);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  const auto saver = make_saver(*session, by_workers(folder));
  save(*saver, 1);
  {
    const SmallFiles small(100'000);
    run(*session, "step");
    must(saver->save(2));
    const Status failed = saver->wait();
    INFO(failed.to_string());
    CHECK(failed.code() == Code::kResourceExhausted);
    CHECK(contains(failed.message(), "/job:worker/task:2"));
    CHECK(contains(failed.message(),
                   folder.path("model.ckpt-2.data-00003-of-00004")));
    run(*session, "step");
  }
  CHECK(!folder.has_temporary());
  CHECK(saver->saved_step() == 1);
  save(*saver, 3);
  check_same(restored(folder, 3, 3, kLarge), training.values(*session));
}

TEST_CASE("a shard that the master does not see as written is not published") {
  const Folder folder("seen");
  const Workers workers(all_in(folder, 2));
  const Training training(2, true);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  OtherFiles nothing(OtherFiles::Sees::kNothing);
  OtherFiles older(OtherFiles::Sees::kOlder);
  for (const auto& [files, code, text] :
       {std::tuple(&nothing, Code::kFailedPrecondition,
                   "the two do not see one file system"),
        {&older, Code::kDataLoss, "which has written it"}}) {
    SaverOptions options = by_workers(folder);
    options.files = files;
    const auto saver = make_saver(*session, options);
    must(saver->save(1));
    const Status failed = saver->wait();
    INFO(failed.to_string());
    CHECK(failed.code() == code);
    CHECK(contains(failed.message(), text));
    CHECK(contains(failed.message(), "/job:worker/task:0"));
    must(saver->close());
    CHECK(folder.names().empty());
  }
}

TEST_CASE("a save that takes too long fails, and the next one does not") {
  const Folder folder("late");
  const Workers workers(all_in(folder, 2));
  const Training training(2, true);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  SaverOptions options = by_workers(folder);
  options.shard_patience = std::chrono::nanoseconds(1);
  {
    const auto saver = make_saver(*session, options);
    must(saver->save(1));
    const Status failed = saver->wait();
    CHECK_MESSAGE(failed.code() == Code::kDeadlineExceeded, failed.to_string());
    run(*session, "step");
  }
  const auto saver = make_saver(*session, by_workers(folder));
  save(*saver, 2);
  check_same(restored(folder, 2, 2), training.values(*session));
}

TEST_CASE("the next save removes what lost workers have left") {
  const Folder folder("left");
  const Workers workers(all_in(folder, 2));
  const Training training(2, true);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  const auto saver = make_saver(*session, by_workers(folder));
  std::ofstream(folder.path("model.ckpt-1.data-00001-of-00003.tmp-tagflow-7"))
      << "left";
  std::ofstream(folder.path("mine.data-00001-of-00003.tmp-tagflow-7"))
      << "of another name";
  save(*saver, 2);
  int left = 0;
  for (const std::string& name : folder.names())
    left += contains(name, ".tmp-tagflow-");
  CHECK(left == 1);
}

TEST_CASE("only the checkpoints that were asked for are written by workers") {
  const Folder folder("hostile");
  const Workers workers({folder.path()});
  const std::string device = "/job:worker/task:0";
  const auto session = actors::make_session(
      [&] {
        actors::SessionOptions options;
        options.backend = workers.cluster;
        return options;
      }(),
      actors::Program().graph);
  const auto text = [](DataType dtype) { return AttrMap{{"dtype", dtype}}; };
  must(session->extend(std::vector<NodeDef>{
      {"save", "Placeholder", {}, "", text(DataType::kInt64)},
      {"x", "Placeholder", {}, "", text(DataType::kFloat)},
      {"path", "Placeholder", {}, "", text(DataType::kString)},
      {"keys", "Placeholder", {}, "", text(DataType::kString)},
      {"sync", "Placeholder", {}, "", text(DataType::kBool)},
      {"hold",
       "_HoldShard",
       {"save", "x", "x"},
       device,
       {{"T", std::vector<DataType>{DataType::kFloat, DataType::kFloat}}}},
      {"write", "_WriteShard", {"save", "path", "keys", "sync"}, device, {}}}));
  const auto hold = [&](int64_t save) {
    return session
        ->run({{"save", Tensor::scalar(save)}, {"x", Tensor::scalar(1.f)}}, {},
              {"hold"}, actors::within_a_minute())
        .status();
  };
  const auto write = [&](int64_t save, const std::string& path,
                         const std::vector<std::string>& keys) {
    return session
        ->run({{"save", Tensor::scalar(save)},
               {"path", Tensor::scalar(path)},
               {"keys", Tensor::of<std::string>({int64_t(keys.size())}, keys)},
               {"sync", Tensor::scalar(false)}},
              {"write:1"}, {}, actors::within_a_minute())
        .status();
  };
  const std::string good = folder.path("a.data-00001-of-00002");
  const auto fails = [&](const std::string& path,
                         const std::vector<std::string>& keys, Code code) {
    CAPTURE(path);
    must(hold(8));
    const Status status = write(8, path, keys);
    INFO(status.to_string());
    CHECK(status.code() == code);
    CHECK(folder.names().empty());
  };
  // Nothing is held.
  CHECK(write(8, good, {"a", "b"}).code() == Code::kNotFound);
  CHECK(hold(0).code() == Code::kInvalidArgument);
  CHECK(hold(-3).code() == Code::kInvalidArgument);
  must(hold(7));
  CHECK(write(8, good, {"a", "b"}).code() == Code::kNotFound);
  CHECK(write(-8, good, {"a", "b"}).code() == Code::kInvalidArgument);
  // Paths.
  const std::string name = "a.data-00001-of-00002";
  fails(folder.path("a"), {"a", "b"}, Code::kInvalidArgument);
  fails(folder.path("a.data-00002-of-00002"), {"a", "b"},
        Code::kInvalidArgument);
  fails(folder.path("a.data-1-of-2"), {"a", "b"}, Code::kInvalidArgument);
  fails(folder.path("a.data--0001-of-00002"), {"a", "b"},
        Code::kInvalidArgument);
  fails(folder.path("a.data-00001-of-99999999999"), {"a", "b"},
        Code::kInvalidArgument);
  fails("", {"a", "b"}, Code::kInvalidArgument);
  fails("/" + name, {"a", "b"}, Code::kPermissionDenied);
  fails(folder.path("../" + name), {"a", "b"}, Code::kPermissionDenied);
  fails(folder.path(std::string("a\0", 2) + name), {"a", "b"},
        Code::kInvalidArgument);
  fails(folder.path("missing/" + name), {"a", "b"}, Code::kNotFound);
  // Keys.
  fails(good, {"a"}, Code::kInvalidArgument);
  fails(good, {"a", "b", "c"}, Code::kInvalidArgument);
  fails(good, {"a", "a"}, Code::kInvalidArgument);
  fails(good, {"a", ""}, Code::kInvalidArgument);
  fails(good, {"a", std::string("\0b", 2)}, Code::kInvalidArgument);
  // A link to elsewhere is not followed.
  const Folder outside("outside");
  fs::create_directory_symlink(outside.path(), folder.path("link"));
  must(hold(8));
  CHECK(write(8, folder.path("link/" + name), {"a", "b"}).code() ==
        Code::kPermissionDenied);
  CHECK(outside.names().empty());
  fs::remove(folder.path("link"));
  // It is written once, and nothing is overwritten.
  must(hold(8));
  must(write(8, good, {"a", "b"}));
  CHECK(folder.names() == std::vector<std::string>{name + ".tmp-tagflow-8"});
  CHECK(write(8, good, {"a", "b"}).code() == Code::kNotFound);
  must(hold(8));
  CHECK(write(8, good, {"a", "b"}).code() == Code::kAlreadyExists);
}

}  // namespace tagflow::net
