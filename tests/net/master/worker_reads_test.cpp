// Workers that read their variables when a checkpoint is restored.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "devices/files/bundle_index.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/scoped_files.h"
#include "tests/net/master/worker_shards.h"

namespace tagflow::net {
namespace {

namespace fs = std::filesystem;
using namespace tagflow::graph;  // NOLINT: for tests
using namespace testing;         // NOLINT: likewise
using checkpoint::BundleEntry;
using graph::testing::contains;

constexpr int64_t kLarge = 1 << 18;  // a MiB

// Counts what a process reads of shards.
class CountedFiles final : public checkpoint::ScopedFiles {
 public:
  CountedFiles()
      : ScopedFiles(FileScope::everywhere(), FileScope::everywhere()) {}

  Result<std::unique_ptr<checkpoint::ReadableFile>> open(
      const std::string& path) override {
    TAGFLOW_ASSIGN(auto file, ScopedFiles::open(path));
    if (!contains(path, ".data-")) return file;
    return std::unique_ptr<checkpoint::ReadableFile>(
        new Counted(std::move(file), bytes));
  }

  std::atomic<uint64_t> bytes{0};

 private:
  class Counted final : public checkpoint::ReadableFile {
   public:
    Counted(std::unique_ptr<checkpoint::ReadableFile> file,
            std::atomic<uint64_t>& bytes)
        : file_(std::move(file)), bytes_(bytes) {}
    uint64_t size() const override { return file_->size(); }
    Result<size_t> read(uint64_t offset, std::span<char> to) const override {
      bytes_ += to.size();
      return file_->read(offset, to);
    }

   private:
    const std::unique_ptr<checkpoint::ReadableFile> file_;
    std::atomic<uint64_t>& bytes_;
  };
};

void flip_byte(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(char(byte ^ 1));
  REQUIRE(file.good());
}

// What is fed to a node that reads shards at a worker.
struct Request {
  std::string prefix;
  std::vector<std::string> keys;
  std::string index;
};

// A graph that somebody else has made, of one such node with `outputs`.
class Hostile {
 public:
  Hostile(const Workers& workers, std::vector<DataType> outputs)
      : count_(outputs.size()) {
    actors::SessionOptions options;
    options.backend = workers.cluster;
    session_ = actors::make_session(options, actors::Program().graph);
    const AttrMap text{{"dtype", DataType::kString}};
    must(session_->extend(
        std::vector<NodeDef>{{"prefix", "Placeholder", {}, "", text},
                             {"keys", "Placeholder", {}, "", text},
                             {"index", "Placeholder", {}, "", text},
                             {"read",
                              "_ReadShards",
                              {"prefix", "keys", "index"},
                              "/job:worker/task:0",
                              {{"T", std::move(outputs)}}}}));
  }
  Result<std::vector<Tensor>> read(const Request& request) const {
    std::vector<std::string> fetches;
    for (size_t i = 0; i < count_; ++i)
      fetches.push_back("read:" + std::to_string(i));
    return session_->run(
        {{"prefix", Tensor::scalar(request.prefix)},
         {"keys", Tensor::of<std::string>({int64_t(request.keys.size())},
                                          request.keys)},
         {"index", Tensor::scalar(request.index)}},
        fetches, {}, actors::within_a_minute());
  }

 private:
  const size_t count_;
  std::unique_ptr<actors::Session> session_;
};

// Makes the steps on workers of its own, which save them, and returns what the
// variables are then.
std::vector<Tensor> saved_before(const Folder& folder, const Training& training,
                                 uint32_t tasks, int steps) {
  const Workers workers(all_in(folder, tasks));
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  run(*session, "step", steps);
  save(*make_saver(*session, by_workers(folder)), steps);
  return training.values(*session);
}

}  // namespace

TEST_CASE("workers read their variables, and the master does not") {
  for (const bool is_pinned : {true, false}) {
    CAPTURE(is_pinned);
    const Folder folder("reads");
    const Workers workers(all_in(folder, 2));
    const Training training(2, is_pinned, kLarge);
    const auto session = training.session(workers.cluster);
    run(*session, "init");
    run(*session, "step", 2);
    CountedFiles files;
    actors::SaverOptions options = by_workers(folder);
    options.files = &files;
    const auto saver = make_saver(*session, options);
    save(*saver, 2);
    const std::vector<Tensor> second = training.values(*session);
    run(*session, "step");
    const std::vector<Tensor> third = training.values(*session);
    // Twice, since the nodes of the first time are used again.
    for (int i = 0; i < 2; ++i) {
      files.bytes = 0;
      CHECK(must(saver->restore())->step == 2);
      CHECK(files.bytes < 10'000);
      check_same(training.values(*session), second);
      run(*session, "step");
      check_same(training.values(*session), third);
    }
  }
}

TEST_CASE("a session that begins reads by workers what its graph places") {
  const Folder folder("begins");
  const std::vector<Tensor> second =
      saved_before(folder, Training(2, true, kLarge), 2, 2);
  for (const bool is_pinned : {true, false}) {
    CAPTURE(is_pinned);
    const Workers workers(all_in(folder, 2));
    const Training training(2, is_pinned, kLarge);
    const auto session = training.session(workers.cluster);
    CountedFiles files;
    actors::SaverOptions options = by_workers(folder);
    options.files = &files;
    const auto saver = make_saver(*session, options);
    files.bytes = 0;
    CHECK(must(saver->restore())->step == 2);
    CHECK((files.bytes < 10'000) == is_pinned);
    check_same(training.values(*session), second);
  }
}

TEST_CASE("what a worker finds damaged is passed over by all") {
  const Folder folder("damaged");
  const Workers workers(all_in(folder, 2));
  const Training training(2, true, kLarge);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  const auto saver = make_saver(*session, by_workers(folder));
  std::vector<std::vector<Tensor>> values;
  for (int64_t step = 1; step <= 2; ++step) {
    run(*session, "step");
    values.push_back(training.values(*session));
    save(*saver, step);
  }
  // In the middle of the large variable of the second worker.
  flip_byte(folder.path("model.ckpt-2.data-00002-of-00003"), kLarge * 2);
  const auto restored = must(saver->restore());
  CHECK(restored->step == 1);
  REQUIRE(restored->damaged.size() == 1);
  CHECK(contains(restored->damaged[0], "model.ckpt-2"));
  CHECK(contains(restored->not_by_workers, "[_ReadShards] "));
  check_same(training.values(*session), values[0]);
  // If none is whole, nothing changes.
  flip_byte(folder.path("model.ckpt-1.data-00002-of-00003"), kLarge * 2);
  run(*session, "step");
  const std::vector<Tensor> before = training.values(*session);
  CHECK(saver->restore().status().code() == Code::kDataLoss);
  check_same(training.values(*session), before);
}

TEST_CASE("if a worker cannot read, no other variable has changed") {
  const Folder folder("half");
  saved_before(folder, Training(2, true), 2, 1);
  flip_byte(folder.path("model.ckpt-1.data-00001-of-00003"), 2);
  // The master reads the variables of the second task, whose place is open.
  const Workers workers(all_in(folder, 2));
  const Training training(2, true, 1000, /*first_free=*/1);
  const auto session = training.session(workers.cluster);
  const auto saver = make_saver(*session, by_workers(folder));
  CHECK(saver->restore().status().code() == Code::kDataLoss);
  for (const char* const read : {"read1", "count_read1"})
    CHECK(session->run({}, {read}, {}, actors::within_a_minute())
              .status()
              .code() == Code::kFailedPrecondition);
}

TEST_CASE("the patience with workers is none of a master that reads") {
  const Folder folder("patience");
  const Workers workers(all_in(folder, 2));
  const Training training(2, true, kLarge);
  const auto session = training.session(workers.cluster);
  run(*session, "init");
  must(make_saver(*session, by_workers(folder))->save(1));
  actors::SaverOptions options = by_workers(folder);
  options.shard_patience = std::chrono::nanoseconds(1);
  {
    // The workers are late, so the master reads.
    const auto saver = make_saver(*session, options);
    const auto restored = must(saver->restore());
    CHECK(restored->step == 1);
    CHECK(!restored->not_by_workers.empty());
  }
  options.writers = actors::ShardWriters::kMaster;
  const auto restored = must(make_saver(*session, options)->restore());
  CHECK(restored->step == 1);
  CHECK(restored->not_by_workers.empty());
}

TEST_CASE("a worker reads only shards of its folder, by an index that fits") {
  const Folder folder("hostile_reads"), outside("outside_reads");
  const Workers workers({folder.path()});
  {
    const Training training(1, true, 100);
    const auto session = training.session(workers.cluster);
    run(*session, "init");
    const auto saver = make_saver(*session, by_workers(folder));
    save(*saver, 1);
  }
  const std::string prefix = folder.path("model.ckpt-1");
  const auto bundle = must(checkpoint::BundleReader::open(prefix));
  const BundleEntry good = *must(bundle->find_tensor("w0"));
  const auto index_of = [](BundleEntry entry, int num_shards = 2) {
    return must(
        checkpoint::format_bundle_index({num_shards, {std::move(entry)}}));
  };
  const Hostile one(workers, {DataType::kFloat});
  const auto ones = must(one.read({prefix, {"w0"}, index_of(good)}));
  CHECK(identical(ones[0], Tensor::of<float>({100}, std::vector(100, 1.f))));

  const auto fails = [](const Hostile& by, const Request& request, Code code) {
    CAPTURE(request.prefix);
    const Status status = by.read(request).status();
    INFO(status.to_string());
    CHECK(status.code() == code);
    CHECK(contains(status.message(), "[_ReadShards] "));
    CHECK(!contains(status.message(), "[_ReadShards] [_ReadShards]"));
  };
  // Places.
  fs::copy_file(folder.path("model.ckpt-1.data-00001-of-00002"),
                outside.path("x.data-00001-of-00002"));
  fs::create_directory_symlink(outside.path(), folder.path("link"));
  for (const std::string& elsewhere :
       {outside.path("x"), folder.path("../x"), folder.path("link/x"),
        std::string("/etc/passwd")})
    fails(one, {elsewhere, {"w0"}, index_of(good)}, Code::kPermissionDenied);
  fails(one, {folder.path("none"), {"w0"}, index_of(good)}, Code::kNotFound);
  // What is not a shard has no name that is asked for.
  std::ofstream(folder.path("secret")) << std::string(1000, 's');
  fails(one, {folder.path("secret"), {"w0"}, index_of(good)}, Code::kNotFound);
  // Keys and types.
  fails(one, {prefix, {}, index_of(good)}, Code::kInvalidArgument);
  fails(one, {prefix, {"w0", "w0"}, index_of(good)}, Code::kInvalidArgument);
  fails(one, {prefix, {"w1"}, index_of(good)}, Code::kNotFound);
  fails(Hostile(workers, {DataType::kInt64}), {prefix, {"w0"}, index_of(good)},
        Code::kInvalidArgument);
  // The index.
  fails(one, {prefix, {"w0"}, ""}, Code::kDataLoss);
  fails(one, {prefix, {"w0"}, std::string(200, 'x')}, Code::kDataLoss);
  BundleEntry bad = good;
  bad.crc ^= 1;
  fails(one, {prefix, {"w0"}, index_of(bad)}, Code::kDataLoss);
  bad = good;
  bad.offset = uint64_t{1} << 62;
  fails(one, {prefix, {"w0"}, index_of(bad)}, Code::kDataLoss);
  bad = good;
  bad.shape = Shape{int64_t{1} << 40};
  bad.size = uint64_t{1} << 42;
  fails(one, {prefix, {"w0"}, index_of(bad)}, Code::kDataLoss);
  bad = good;
  bad.shape = Shape{int64_t{1} << 40};
  fails(one, {prefix, {"w0"}, index_of(bad)}, Code::kDataLoss);
  // The worker goes on.
  must(one.read({prefix, {"w0"}, index_of(good)}));
}

}  // namespace tagflow::net
