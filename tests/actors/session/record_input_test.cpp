// RecordInput. Orders are those that TensorFlow 2.21 gives for the same files.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "actors/checkpoint/snapshot.h"
#include "devices/files/record_file.h"
#include "tests/actors/program.h"
#include "tests/devices/files/deflated.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;
using tagflow::testing::deflated;

namespace {

using Texts = std::vector<std::string>;

// Files "f0", "f1", ... of records "0a", "0b", ..., and a session that reads
// them.
struct RecordFiles {
  RecordFiles(int files, int records, AttrMap attrs)
      : folder("record_input"), is_packed(attrs.contains("compression_type")) {
    for (int f = 0; f < files; ++f) {
      std::string bytes;
      for (int r = 0; r < records; ++r)
        checkpoint::append_record(bytes, fmt::format("{}{}", f, char('a' + r)));
      write(fmt::format("f{}", f), is_packed ? deflated(bytes, true) : bytes);
    }
    attrs["file_pattern"] = (folder.path() / "f*").string();
    output = p.s.named("records").op("RecordInput", {}, std::move(attrs));
    REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
    session = make_session({}, p.graph);
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
  }
  Result<std::vector<Tensor>> run() const {
    return session->run({}, {"records"}, {}, within_a_minute());
  }
  std::string next() const {
    const auto got = run();
    if (!got.ok()) return got.status().to_string();
    return fmt::format("{}", fmt::join(elements<std::string>((*got)[0]), " "));
  }

  tagflow::testing::TempFolder folder;
  bool is_packed;
  Program p;
  Output output;
  std::unique_ptr<Session> session;
};

// TensorFlow shuffles files in the order in which their folder lists them,
// which was that of `listed` when its answers were recorded. Ours are in order.
std::string as_sorted(std::string records, std::string_view listed) {
  for (char& c : records)
    if (const size_t at = listed.find(c); at != listed.npos) c = char('0' + at);
  return records;
}

AttrMap with(int64_t batch, int64_t parallelism) {
  return {{"batch_size", batch}, {"file_parallelism", parallelism}};
}

}  // namespace

TEST_CASE("records of one file come in TensorFlow's order, epoch by epoch") {
  const RecordFiles input(1, 12, with(5, 1));
  for (const char* batch :
       {"0a 0d 0b 0i 0f", "0e 0c 0l 0j 0g", "0h 0k 0l 0f 0e", "0k 0a 0j 0c 0g",
        "0b 0i 0h 0d 0g", "0e 0j 0f 0l 0d"})
    CHECK(input.next() == batch);
}

TEST_CASE("files come in TensorFlow's order") {
  const RecordFiles input(3, 5, with(6, 1));
  for (const char* batch :
       {"1b 2e 2d 1d 2b 1e", "0b 1c 2c 2a 0e 0c", "1a 0a 0d 1c 1e 0a",
        "2a 1a 2c 0c 2b 2e", "1b 1d 2d 0b 0d 0e", "2a 2d 1a 0d 1b 1c"})
    CHECK(input.next() == as_sorted(batch, "021"));
  AttrMap attrs = with(6, 1);
  attrs["file_shuffle_shift_ratio"] = 0.5f;
  attrs["file_random_seed"] = int64_t(7);
  const RecordFiles shifted(3, 5, attrs);
  for (const char* batch :
       {"1b 1a 0a 1d 2d 0d", "0e 1e 1c 2c 2e 0c", "2b 2a 0b 1d 2b 1b",
        "0b 1e 0e 1c 2a 0a", "2d 0c 0d 2e 1a 2c", "2a 0c 1b 1e 2e 2b"})
    CHECK(shifted.next() == as_sorted(batch, "021"));
}

TEST_CASE("more records than a shard gathers at once, and compressed ones") {
  AttrMap attrs = with(20, 1);
  attrs["compression_type"] = std::string("GZIP");
  const RecordFiles packed(1, 20, attrs);
  CHECK(packed.next() ==
        "0g 0p 0m 0s 0c 0a 0k 0j 0e 0h 0f 0t 0d 0i 0q 0r 0n 0b 0l 0o");
  const RecordFiles two(2, 20, with(40, 1));
  CHECK(two.next() ==
        as_sorted("1b 0f 1c 1m 1e 0p 1i 0g 0m 1d 1j 0s 0r 1h 0n 0q 1r 0c 1n 1p "
                  "1g 0h 0a 0k 0o 1a 1k 1s 0d 0b 1f 0l 0e 1t 0i 0j 0t 1q 1l 1o",
                  "10"));
}

TEST_CASE("each epoch has each record once, whatever the buffer and shards") {
  for (const int64_t shards : {1, 2, 16})
    for (const int64_t buffer : {1, 3, 1000}) {
      AttrMap attrs = with(6, shards);
      attrs["file_buffer_size"] = buffer;
      const RecordFiles input(4, 6, attrs);
      for (int epoch = 0; epoch < 3; ++epoch) {
        Texts records;
        for (int batch = 0; batch < 4; ++batch) {
          const auto got = must(input.run());
          std::ranges::copy(elements<std::string>(got[0]),
                            std::back_inserter(records));
        }
        std::ranges::sort(records);
        CHECK(records.front() == "0a");
        CHECK(records.back() == "3f");
        CHECK(std::ranges::adjacent_find(records) == records.end());
      }
    }
}

TEST_CASE("an empty batch has no records, and needs no file") {
  const RecordFiles input(0, 0, with(0, 1));
  CHECK(must(input.run())[0].shape() == Shape{0});
}

TEST_CASE("errors of RecordInput name the file, and stay") {
  const auto check = [](const RecordFiles& input, std::string_view code,
                        std::string_view text) {
    for (int again = 0; again < 2; ++again) {
      const std::string answer = input.next();
      CHECK_MESSAGE(answer.find(code) == 0, answer);
      CHECK_MESSAGE(answer.find(text) != answer.npos, answer);
    }
  };
  check(RecordFiles(0, 0, with(2, 1)), "NotFound", "Found no files at ");
  check(RecordFiles(2, 0, with(2, 1)), "OutOfRange", "have no record");
  const RecordFiles damaged(1, 3, with(2, 2));
  damaged.write("f0", "what is no record");
  check(damaged, "DataLoss", "f0\": the record at byte 0");
  check(damaged, "DataLoss", "[RecordInput \"records\"]");
  const auto refused = [](AttrMap attrs) {
    attrs["file_pattern"] = std::string("f*");
    Program p;
    const Output records = p.s.op("RecordInput", {}, std::move(attrs));
    const auto results = p.try_run({}, {records});
    return results.status().to_string();
  };
  CHECK(refused(with(-1, 1)).find("batch_size must not be negative") !=
        std::string::npos);
  CHECK(refused(with(1, 0)).find("file_parallelism must be positive") !=
        std::string::npos);
  CHECK(refused({{"file_buffer_size", int64_t(-1)}})
            .find("file_buffer_size must be positive") != std::string::npos);
  CHECK(refused({{"compression_type", std::string("LZ")}}).find("\"LZ\"") !=
        std::string::npos);
}

TEST_CASE("the files of several patterns are in the order of the patterns") {
  const auto first = [](const std::string& patterns) {
    AttrMap attrs = with(15, 1);
    attrs["file_pattern"] = patterns;
    Program p;
    const Output records = p.s.op("RecordInput", {}, std::move(attrs));
    const auto got = must(p.try_run({}, {records}));
    return fmt::format("{}", fmt::join(elements<std::string>(got[0]), " "));
  };
  const RecordFiles input(3, 5, with(15, 1));
  const std::string f = (input.folder.path() / "f").string();
  const std::string sorted = first(f + "*");
  CHECK(first(f + "[01]," + f + "2") == sorted);
  CHECK(first(f + "[12]," + f + "0") == as_sorted(sorted, "201"));
}

TEST_CASE("RecordInput counts the records that it holds") {
  const RecordFiles input(1, 20, with(2, 1));
  input.write("f1", [] {
    std::string bytes;
    for (int i = 0; i < 20; ++i)
      checkpoint::append_record(bytes, std::string(100'000, 'x'));
    return bytes;
  }());
  SessionOptions options;
  options.devices = "cpu:1:memory=1MiB";
  const auto status = input.p.try_run({}, {input.output}, options).status();
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK_MESSAGE(
      status.to_string().find("the buffer of records") != std::string::npos,
      status.to_string());
}

TEST_CASE("RecordInput reads only what its session may read") {
  const RecordFiles input(1, 3, with(2, 1));
  SessionOptions options;
  options.policy.reads = FileScope::beneath("/usr");
  const auto results = input.p.try_run({}, {input.output}, options);
  CHECK(results.status().code() == Code::kPermissionDenied);
  options.policy.reads = FileScope::beneath(input.folder.path().string());
  CHECK(input.p.try_run({}, {input.output}, options).ok());
}

TEST_CASE("a checkpoint has the position of RecordInput") {
  const RecordFiles input(3, 5, with(4, 1));
  Texts all;
  for (int i = 0; i < 9; ++i) all.push_back(input.next());
  const auto first = make_session({}, input.p.graph);
  for (int i = 0; i < 5; ++i)
    must(first->run({}, {"records"}, {}, within_a_minute()));
  const Snapshot snapshot = must(must(Snapshots::create(*first))->take());
  const auto second = make_session({}, input.p.graph);
  must(must(Snapshots::create(*second))->restore(snapshot));
  for (size_t i = 5; i < all.size(); ++i) {
    const auto got = must_run(*second, {}, {"records"});
    CHECK(fmt::format("{}", fmt::join(elements<std::string>(got[0]), " ")) ==
          all[i]);
  }
}
