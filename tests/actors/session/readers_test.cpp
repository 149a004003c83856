// Readers of records, over queues of file names. Keys, values and counts are
// those of TensorFlow 2.21.
#include <doctest/doctest.h>

#include <fstream>
#include <future>

#include "actors/shared_state.h"
#include "devices/files/record_file.h"
#include "devices/kernels/reader/reader.h"
#include "tests/actors/pending.h"
#include "tests/actors/program.h"
#include "tests/devices/files/lmdb_databases.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

using Texts = std::vector<std::string>;

// An empty folder, removed at the end.
struct Folder : tagflow::testing::TempFolder {
  Folder() : TempFolder("readers") {}
};

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string records(const Texts& values) {
  std::string bytes;
  for (const std::string& value : values)
    checkpoint::append_record(bytes, value);
  return bytes;
}

// A queue of names, and a reader: of TensorFlow 1 unless its name ends in V2.
struct Reading : Program {
  explicit Reading(std::string_view reader, AttrMap attrs = {}) {
    const std::string version = reader.ends_with("V2") ? "V2" : "";
    const ops::Queue queue =
        ops::fifo_queue(s.named("q"), {DataType::kString},
                        {.shapes = {PartialShape::scalar()}});
    const Output handle = s.named("reader").op(reader, {}, std::move(attrs));
    const Output names =
        version.empty() ? s.op("FakeQueue", {queue.handle}) : queue.handle;
    ops::enqueue_many(s.named("give"), queue,
                      {input("names", DataType::kString, {-1})});
    ops::close_queue(s.named("close"), queue);
    s.named("read").op("ReaderRead" + version, {handle, names});
    s.named("read_up_to")
        .op("ReaderReadUpTo" + version,
            {handle, names, input("count", DataType::kInt64, {})});
    s.named("produced").op("ReaderNumRecordsProduced" + version, {handle});
    s.named("completed").op("ReaderNumWorkUnitsCompleted" + version, {handle});
    s.named("state").op("ReaderSerializeState" + version, {handle});
    s.named("restore").op("ReaderRestoreState" + version,
                          {handle, input("saved", DataType::kString, {})});
    s.named("reset").op("ReaderReset" + version, {handle});
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    session = must(create_session({}));
    REQUIRE(session->extend(graph).ok());
  }

  void give(const Texts& names, bool is_all = true) const {
    const Tensor given =
        Tensor::of<std::string>({int64_t(names.size())}, names);
    must(session->run({{"names", given}}, {}, {"give"}, within_a_minute()));
    if (is_all) must(session->run({}, {}, {"close"}, within_a_minute()));
  }
  Result<std::vector<Tensor>> fetch(const Texts& names,
                                    const std::vector<Feed>& feeds = {}) const {
    return session->run(feeds, names, {}, within_a_minute());
  }
  // "key=value produced completed", or the code and the text of the error.
  std::string read() const {
    const auto record = fetch({"read:0", "read:1"});
    const auto counts = must(fetch({"produced", "completed"}));
    if (!record.ok()) return record.status().to_string();
    return fmt::format("{}={} {} {}", (*record)[0].scalar_value<std::string>(),
                       (*record)[1].scalar_value<std::string>(),
                       counts[0].scalar_value<int64_t>(),
                       counts[1].scalar_value<int64_t>());
  }
  // The values, and the number of completed files.
  std::string read_up_to(int64_t count) const {
    const auto got =
        fetch({"read_up_to:1"}, {{"count", Tensor::scalar(count)}});
    if (!got.ok()) return got.status().to_string();
    const auto completed = must(fetch({"completed"}));
    return fmt::format("{} {}",
                       fmt::join(elements<std::string>((*got)[0]), ","),
                       completed[0].scalar_value<int64_t>());
  }
  std::string state() const {
    return must(fetch({"state"}))[0].scalar_value<std::string>();
  }
  Status restore(const std::string& state) const {
    return session
        ->run({{"saved", Tensor::scalar(state)}}, {}, {"restore"},
              within_a_minute())
        .status();
  }

  std::unique_ptr<Session> session;
};

bool ends(const std::string& answer) {
  return answer.find("OutOfRange") == 0 &&
         answer.find("is closed and has insufficient elements") != answer.npos;
}
bool says(const std::string& answer, std::string_view code,
          std::string_view text) {
  return answer.find(code) == 0 && answer.find(text) != answer.npos;
}

}  // namespace

TEST_CASE("lines are read from file after file") {
  const Folder folder;
  const std::string a = folder / "a", b = folder / "b", empty = folder / "e";
  write(a, "one\r\ntwo\rx\n\nlast");
  write(b, "h1\nv\n");
  write(empty, "");
  Reading reading("TextLineReaderV2");
  reading.give({a, empty, b});
  CHECK(reading.read() == a + ":1=one 1 0");
  CHECK(reading.read() == a + ":2=two\rx 2 0");
  CHECK(reading.read() == a + ":3= 3 0");
  CHECK(reading.read() == a + ":4=last 4 0");
  CHECK(reading.read() == b + ":1=h1 5 2");
  CHECK(reading.read() == b + ":2=v 6 2");
  CHECK(ends(reading.read()));
  CHECK(ends(reading.read()));
  CHECK(must(reading.fetch({"completed"}))[0].scalar_value<int64_t>() == 3);

  Reading skipping("TextLineReaderV2", {{"skip_header_lines", int64_t(1)}});
  skipping.give({b, a});
  CHECK(skipping.read() == b + ":2=v 1 0");
  CHECK(skipping.read() == a + ":2=two\rx 2 1");
}

TEST_CASE("several records are read at once, but of one file") {
  const Folder folder;
  const std::string a = folder / "a", b = folder / "b";
  write(a, "1\n2\n3\n4\n");
  write(b, "5\n6\n");
  Reading reading("TextLineReaderV2");
  reading.give({a, b});
  CHECK(reading.read_up_to(0) == " 0");
  CHECK(reading.read_up_to(3) == "1,2,3 0");
  CHECK(reading.read_up_to(3) == "4 1");
  CHECK(reading.read_up_to(2) == "5,6 1");
  CHECK(ends(reading.read_up_to(2)));
  CHECK(says(reading.read_up_to(-1), "InvalidArgument",
             "num_records must not be negative"));
}

TEST_CASE("records of a fixed length may overlap or be apart") {
  const Folder folder;
  const std::string f = folder / "f";
  write(f, "HHaaabbbcccF");
  const auto values = [&](int64_t hop) {
    Reading reading("FixedLengthRecordReaderV2", {{"header_bytes", int64_t(2)},
                                                  {"record_bytes", int64_t(3)},
                                                  {"footer_bytes", int64_t(1)},
                                                  {"hop_bytes", hop}});
    reading.give({f});
    CHECK(reading.read() == f + ":0=aaa 1 0");
    return reading.read_up_to(9);
  };
  CHECK(values(0) == "bbb,ccc 1");
  CHECK(values(2) == "abb,bbc,ccc 1");
  CHECK(values(6) == "ccc 1");
  Reading longer("FixedLengthRecordReaderV2",
                 {{"header_bytes", int64_t(20)}, {"record_bytes", int64_t(3)}});
  longer.give({f});
  CHECK(says(longer.read(), "DataLoss", "shorter than a header of 20"));
  for (const int64_t bytes : {int64_t(-1), int64_t(0)}) {
    Reading refused("FixedLengthRecordReaderV2", {{"record_bytes", bytes}});
    CHECK(says(refused.fetch({"state"}).status().to_string(), "InvalidArgument",
               "record"));
  }
}

TEST_CASE("TFRecords have the position as key, and checksums") {
  const Folder folder;
  const std::string r = folder / "r", bad = folder / "bad";
  const std::string bytes = records({"r1", "", "r333"});
  write(r, bytes);
  Reading reading("TFRecordReaderV2");
  reading.give({r});
  CHECK(reading.read() == r + ":0=r1 1 0");
  CHECK(reading.read() == r + ":18= 2 0");
  CHECK(reading.read() == r + ":34=r333 3 0");
  CHECK(ends(reading.read()));
  const auto damaged = [&](std::string changed) {
    write(bad, changed);
    Reading other("TFRecordReaderV2");
    other.give({bad, r});
    std::string answer;
    do {
      answer = other.read();
    } while (answer.find("=") != answer.npos);
    // The rest of the file is given up, not of all files.
    CHECK(other.read().find(r + ":0=r1 ") == 0);
    return answer;
  };
  CHECK(says(damaged(bytes.substr(0, bytes.size() - 3)), "DataLoss",
             "the record at byte 34 ends too early"));
  CHECK(says(damaged(bytes.substr(0, bytes.size() - 10)), "DataLoss",
             "the record at byte 34 ends too early"));
  std::string changed = bytes;
  changed[12] ^= 1;
  CHECK(says(damaged(changed), "DataLoss", "the record at byte 0 is damaged"));
  changed = bytes;
  changed[0] ^= 1;
  CHECK(says(damaged(changed), "DataLoss", "has a damaged length"));
}

TEST_CASE("names and whole files are records") {
  const Folder folder;
  const std::string a = folder / "a";
  write(a, "x\ny");
  Reading whole("WholeFileReaderV2");
  whole.give({a, folder / "missing", a});
  CHECK(whole.read() == a + "=x\ny 1 1");
  CHECK(says(whole.read(), "NotFound", "missing"));
  CHECK(whole.read() == a + "=x\ny 2 2");
  CHECK(whole.state() == "\x08\x03\x10\x02\x18\x02");
  Reading identity("IdentityReaderV2");
  identity.give({"any", "name"});
  CHECK(identity.read_up_to(5) == "any 1");
  CHECK(identity.read() == "name=name 2 2");
  CHECK(identity.state() == "\x08\x02\x10\x02\x18\x02");
}

TEST_CASE("records of LMDB have keys of their own") {
  const Folder folder;
  const std::string named = folder / "db", file = named + "/data.mdb",
                    empty = checkpoint::lmdb_path("empty.mdb");
  std::filesystem::create_directory(named);
  std::filesystem::copy_file(checkpoint::lmdb_path("small.mdb"), file);
  const auto records = checkpoint::lmdb_records(1, 40, 100);
  const auto count = int64_t(records.size());
  Reading reading("LMDBReader");
  reading.give({named, empty, file});
  for (int64_t i = 0; i < 2 * count; ++i) {
    const auto& [key, value] = records[size_t(i % count)];
    CHECK(reading.read() ==
          fmt::format("{}={} {} {}", key, value, i + 1, i < count ? 0 : 2));
  }
  CHECK(ends(reading.read()));
  CHECK(must(reading.fetch({"completed"}))[0].scalar_value<int64_t>() == 3);

  Reading first("LMDBReader");
  first.give({named});
  CHECK(first.read_up_to(3) == fmt::format("{},{},{} 0", records[0].second,
                                           records[1].second,
                                           records[2].second));
  Reading second("LMDBReader");
  second.give({file});
  REQUIRE(second.restore(first.state()).ok());
  CHECK(second.read() ==
        fmt::format("{}={} 4 0", records[3].first, records[3].second));
  REQUIRE(second.session->run({}, {}, {"reset"}).ok());
  CHECK(second.read() ==
        fmt::format("{}={} 1 0", records[0].first, records[0].second));
}

TEST_CASE("what is no database of LMDB is named, and the next one is read") {
  const Folder folder;
  const std::string lines = folder / "lines", whole = folder / "whole",
                    cut = folder / "cut", bare = folder / "bare";
  write(lines, "1\n2\n");
  std::filesystem::copy_file(checkpoint::lmdb_path("small.mdb"), whole);
  std::filesystem::copy_file(whole, cut);
  std::filesystem::resize_file(cut, 4096);
  std::filesystem::create_directory(bare);
  Reading reading("LMDBReader");
  reading.give({lines, cut, bare, whole});
  CHECK(says(reading.read(), "DataLoss",
             "[LMDBReader] \"" + lines + "\": the file is no database of"));
  CHECK(says(reading.read(), "DataLoss",
             "[LMDBReader] \"" + cut + "\": the file has 8 pages, so not "));
  CHECK(says(reading.read(), "NotFound", bare + "/data.mdb"));
  CHECK(reading.read() ==
        "0000=" + checkpoint::lmdb_records()[0].second + " 1 0");
}

TEST_CASE("a reader goes on where its state was taken") {
  const Folder folder;
  const std::string a = folder / "a", b = folder / "b";
  write(a, "1\n2\n3\n");
  write(b, "4\n");
  Reading first("TextLineReaderV2");
  first.give({a});
  first.read();
  CHECK(first.read() == a + ":2=2 2 0");
  const std::string state = first.state();
  Reading second("TextLineReaderV2");
  second.give({b});
  REQUIRE(second.restore(state).ok());
  CHECK(second.read() == a + ":3=3 3 0");
  CHECK(second.read() == b + ":1=4 4 1");
  CHECK(second.session->run({}, {}, {"reset"}).ok());
  CHECK(must(second.fetch({"produced"}))[0].scalar_value<int64_t>() == 0);
  CHECK(ends(second.read()));
  for (const std::string& other :
       {std::string("BOGUS"), state.substr(1), state + "ExtraJunk",
        std::string("\x08\x02\x10\x05")})
    CHECK(says(second.restore(other).to_string(), "InvalidArgument", "state"));
}

TEST_CASE("a reader reads on before it has given out what it has read") {
  const Folder folder;
  const std::string file = folder / "a";
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += std::to_string(i) + "\n";
  write(file, lines);
  Reading reading("TextLineReaderV2");
  reading.give({file});
  reading.read();
  const auto& resources = reading.session->shared_state()->resources();
  Ref<devices::StateObject> found;
  resources.for_each(
      [&](const devices::ResourceKey& key, devices::StateObject& object) {
        if (key.kind == devices::Reader::kKind)
          found = Ref<devices::StateObject>(&object);
      });
  REQUIRE(found);
  // Nobody is inside between the reads.
  const auto& reader = static_cast<const devices::Reader&>(*found);
  constexpr int kPiece = 1024;
  CHECK(reader.can_give(kPiece - 1));
  CHECK(!reader.can_give(kPiece));
  for (int i = 1; i < kPiece / 2 + 2; ++i) reading.read();
  CHECK(comes_true([&] { return !reader.is_busy(); }));
  reading.read();  // enters it after what was read
  CHECK(reader.can_give(kPiece));
}

TEST_CASE("a read that waits for a name ends with its step, and takes none") {
  Reading reading("IdentityReaderV2");
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(20);
  const auto late = reading.session->run({}, {"read:1"}, {}, soon);
  CHECK(late.status().code() == Code::kDeadlineExceeded);
  CHECK(late.status().message().find(
            "reader \"reader\" waits for the name of a file: queue \"q\" has "
            "0 elements") != std::string::npos);
  auto waiting = std::async(std::launch::async, [&] { return reading.read(); });
  reading.give({"x"}, false);
  CHECK(waiting.get() == "x=x 1 1");
  // Two wait; the session's end answers both.
  auto more = std::async(std::launch::async, [&] {
    return reading.session->run({}, {"read:1"}, {}).status();
  });
  (void)reading.session->run({}, {"read:1"}, {}, soon);
  (void)reading.session->close();
  CHECK(!more.get().ok());
}

TEST_CASE("readers on many threads give each record once") {
  const Folder folder;
  Texts names;
  int64_t sum = 0;
  for (int file = 0; file < 8; ++file) {
    Texts values;
    for (int i = 0; i < 500; ++i) {
      values.push_back(std::to_string(file * 1000 + i));
      sum += file * 1000 + i;
    }
    names.push_back(folder / std::to_string(file));
    write(names.back(), records(values));
  }
  Reading reading("TFRecordReaderV2");
  reading.give(names);
  std::vector<std::future<int64_t>> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(std::async(std::launch::async, [&] {
      int64_t own = 0;
      for (;;) {
        const auto got = reading.fetch({"read_up_to:1"},
                                       {{"count", Tensor::scalar<int64_t>(7)}});
        if (!got.ok()) return own;
        for (const std::string& value : (*got)[0].flat<std::string>())
          own += std::stoll(value);
      }
    }));
  for (auto& thread : threads) sum -= thread.get();
  CHECK(sum == 0);
  CHECK(must(reading.fetch({"completed"}))[0].scalar_value<int64_t>() == 8);
}

TEST_CASE("files that the session must not read are refused") {
  const Folder folder;
  write(folder / "a", "1\n");
  Reading reading("TextLineReaderV2");
  SessionOptions options;
  options.policy.reads = FileScope::beneath(folder / "elsewhere");
  std::filesystem::create_directory(folder / "elsewhere");
  reading.session = must(create_session(options));
  REQUIRE(reading.session->extend(reading.graph).ok());
  reading.give({folder / "a"});
  CHECK(says(reading.read(), "PermissionDenied", "elsewhere"));
  CHECK(ends(reading.read()));

  // A folder that may be read does not say where its file is.
  std::filesystem::copy_file(checkpoint::lmdb_path("small.mdb"),
                             folder / "data.mdb");
  std::filesystem::create_symlink(folder / "data.mdb",
                                  folder / "elsewhere/data.mdb");
  Reading database("LMDBReader");
  database.session = must(create_session(options));
  REQUIRE(database.session->extend(database.graph).ok());
  database.give({folder / "elsewhere"});
  CHECK(says(database.read(), "PermissionDenied", "data.mdb"));
}

TEST_CASE("nodes that share a reader must agree about it") {
  Program program;
  const auto reader = [&](std::string_view op) {
    const Output handle =
        program.s.op(op, {}, {{"shared_name", std::string("r")}});
    return program.s.op("ReaderNumRecordsProducedV2", {handle});
  };
  const Output lines = reader("TextLineReaderV2");
  const Output names = reader("IdentityReaderV2");
  CHECK(program.error({}, {lines, names}).find("reader \"r\" exists as a") !=
        std::string::npos);
}
