// How pipelines of datasets run: waits, errors, threads, ends and files.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <numeric>
#include <thread>

#include "devices/files/record_file.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/devices/files/deflated.h"
#include "tests/temp_folder.h"

namespace tagflow::actors {

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// All texts that an iterator gives, and the codes of its errors.
std::vector<std::string> all_texts(Session& session) {
  std::vector<std::string> all;
  const auto made = session.run({}, {}, {"init"}, within_a_minute());
  if (!made.ok()) all.emplace_back(code_name(made.status().code()));
  while (made.ok()) {
    const auto values = session.run({}, {"next"}, {}, within_a_minute());
    if (values.ok())
      all.push_back(must((*values)[0].item<std::string>()));
    else if (values.status().code() == Code::kOutOfRange)
      break;
    else
      all.emplace_back(code_name(values.status().code()));
  }
  return all;
}

}  // namespace

TEST_CASE("datasets: a run that gives up leaves the element to the next one") {
  const auto session = waiting_graph().session({});
  initialise(*session);
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(30);
  const auto late = next_number(*session, soon);
  CHECK(late.status().code() == Code::kDeadlineExceeded);
  CHECK(contains(late.status().to_string(), "makes its next element"));
  must(session->run({}, {}, {"put"}, within_a_minute()));
  CHECK(must(next_number(*session)) == 10);
  must(session->run({}, {}, {"put"}, within_a_minute()));
  CHECK(must(next_number(*session)) == 11);
}

TEST_CASE("datasets: a new initialisation ends the waits of the old one") {
  const auto session = waiting_graph().session({});
  initialise(*session);
  Status answer;
  std::thread waiter([&] { answer = next_number(*session).status(); });
  while (session->counters().waiting == 0) std::this_thread::yield();
  initialise(*session);
  waiter.join();
  CHECK(answer.code() == Code::kCancelled);
  CHECK(contains(answer.to_string(), "initialised again"));
  must(session->run({}, {}, {"put"}, within_a_minute()));
  CHECK(must(next_number(*session)) == 10);
}

TEST_CASE("datasets: a session ends while a function waits") {
  for (int i = 0; i < 5; ++i) {
    auto session = waiting_graph().session({});
    initialise(*session);
    std::atomic<bool> is_answered = false;
    session->run_async({}, {"next"}, {}, {},
                       [&](const auto& answer, const RunStats&) {
                         is_answered = !answer.ok();
                       });
    session.reset();
    CHECK(is_answered);
  }
}

TEST_CASE("datasets: an iterator in a function ends with its session") {
  PipelineGraph g;
  g.define(
      graph::function("twice", {"x: int64"}, {"y: int64"},
                      {body_node("sum", "AddV2", {"x", "x"}, {{"T", kLong}})},
                      {{"y", "sum:z:0"}}));
  g.define(graph::function(
      "first", {"x: int64"}, {"y: int64"},
      {body_const("stop", Tensor::scalar<int64_t>(9)),
       body_const("step", Tensor::scalar<int64_t>(1)),
       body_node("numbers", "RangeDataset",
                 {"x", "stop:output:0", "step:output:0"}, with_spec()),
       body_node("mapped", "MapDataset", {"numbers:handle:0"},
                 calling("twice")),
       body_node("inner", "IteratorV2", {},
                 with_spec({{"shared_name", std::string("inner")},
                            {"container", std::string()}})),
       body_node("begin", "MakeIterator",
                 {"mapped:handle:0", "inner:handle:0"}),
       body_node("got", "IteratorGetNext", {"inner:handle:0", "^begin"},
                 with_spec())},
      {{"y", "got:components:0"}}));
  // As "first", of a dataset that it gets.
  g.define(graph::function(
      "kept", {"x: int64", "data: variant"}, {"y: int64"},
      {body_node("inner", "IteratorV2", {},
                 with_spec({{"shared_name", std::string("kept")},
                            {"container", std::string()}})),
       body_node("begin", "MakeIterator", {"data", "inner:handle:0"}),
       body_node("got", "IteratorGetNext", {"inner:handle:0", "^begin"},
                 with_spec()),
       body_node("sum", "AddV2", {"x", "got:components:0"}, {{"T", kLong}})},
      {{"y", "sum:z:0"}}));
  g.range("numbers", 9);
  AttrMap keeps = calling("kept");
  keeps["Targuments"] = std::vector<DataType>{DataType::kVariant};
  g.add({body_node("doubled", "MapDataset", {"numbers"}, calling("twice")),
         body_node("firsts", "MapDataset", {"numbers"}, calling("first")),
         body_node("both", "MapDataset", {"firsts", "doubled"}, keeps)});
  g.iterate("both");
  SessionOptions options;
  options.engine = must(Engine::create({.workers = 2}));
  const std::weak_ptr<Engine> engine = options.engine;
  {
    const auto session = g.session(options);
    initialise(*session);
    for (int64_t i = 0; i < 3; ++i) CHECK(must(next_number(*session)) == 2 * i);
  }
  options.engine.reset();
  for (int i = 0; i < 1000 && !engine.expired(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(engine.expired());
}

TEST_CASE("datasets: closing tells of a function that does not end in time") {
  static_cast<void>(blocked_graph());  // its op is registered then
  PipelineGraph g;
  g.define(
      graph::function("held", {"x: int64"}, {"y: int64"},
                      {body_node("block", "TestBlock", {"x"}, {{"T", kLong}})},
                      {{"y", "block:y:0"}}));
  g.range("numbers", 100);
  g.add({body_node("mapped", "MapDataset", {"numbers"}, calling("held"))});
  g.iterate("mapped");
  const auto session = g.session({});
  initialise(*session);
  Blockade blockade;
  Pending run(*session, "next");
  blockade.until_begun(1);
  run.token.cancel();
  CHECK(run.get().status().code() == Code::kCancelled);
  // The run is over, the call that it has waited for is not.
  const Status status = session->close(std::chrono::nanoseconds(0));
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(contains(status.to_string(), "functions of datasets"));
  CHECK(contains(status.to_string(), "still has 1 open run after"));
  blockade.let_go();
  CHECK(session->close().ok());
}

TEST_CASE("datasets: an iterator that nobody asks any more is freed") {
  auto session = waiting_graph().session({});
  initialise(*session);
  const auto state = session->shared_state();
  // It outlives its session in the shared state, and has no functions then.
  session.reset();
  const graph::Graph graph = waiting_graph().graph;
  SessionOptions options;
  options.state = state;
  const auto other = make_session(options, graph);
  CHECK(next_number(*other).status().code() == Code::kFailedPrecondition);
  initialise(*other);
  must(other->run({}, {}, {"put"}, within_a_minute()));
  CHECK(must(next_number(*other)) == 10);
}

TEST_CASE("datasets: many threads share an iterator") {
  constexpr int64_t kElements = 2000;
  PipelineGraph g;
  g.define(
      graph::function("twice", {"x: int64"}, {"y: int64"},
                      {body_node("sum", "AddV2", {"x", "x"}, {{"T", kLong}})},
                      {{"y", "sum:z:0"}}));
  g.range("numbers", kElements);
  g.number("calls", 4);
  g.add({body_node("mapped", "ParallelMapDatasetV2", {"numbers", "calls"},
                   calling("twice")),
         body_node("ahead", "PrefetchDataset", {"mapped", "calls"},
                   with_spec())});
  g.iterate("ahead");
  SessionOptions options;
  options.workers = 3;
  const auto session = g.session(options);
  initialise(*session);
  std::atomic<int64_t> sum{0}, count{0}, ends{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (;;) {
        const auto value = next_number(*session);
        if (!value.ok()) {
          ends += value.status().code() == Code::kOutOfRange ? 1 : 0;
          return;
        }
        sum += *value;
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(ends == 4);
  CHECK(count == kElements);
  CHECK(sum == kElements * (kElements - 1));
}

TEST_CASE("datasets: errors name the dataset, the function and the node") {
  PipelineGraph g;
  g.define(graph::function("divide", {"x: int64"}, {"y: int64"},
                           {body_const("zero", Tensor::scalar(int64_t{0})),
                            body_node("quotient", "FloorDiv",
                                      {"x", "zero:output:0"}, {{"T", kLong}})},
                           {{"y", "quotient:z:0"}}));
  g.range("numbers", 3);
  g.add({body_node("mapped", "MapDataset", {"numbers"}, calling("divide"))});
  g.iterate("mapped");
  const auto session = g.session({});
  CHECK(next_number(*session).status().code() == Code::kFailedPrecondition);
  initialise(*session);
  const auto value = next_number(*session);
  INFO(value.status().to_string());
  CHECK(value.status().code() == Code::kInvalidArgument);
  for (const char* part :
       {"MapDataset \"mapped\"", "function \"divide\"", "quotient"})
    CHECK(contains(value.status().to_string(), part));
}

TEST_CASE("datasets: those that are nested too deeply are refused") {
  PipelineGraph g;
  g.range("d0", 3);
  g.number("count", 2);
  for (int i = 1; i <= 1100; ++i)
    g.add({body_node(fmt::format("d{}", i), "TakeDataset",
                     {fmt::format("d{}", i - 1), "count"}, with_spec())});
  g.iterate("d1100");
  const auto session = g.session({});
  const auto made = session->run({}, {}, {"init"}, within_a_minute());
  CHECK(made.status().code() == Code::kResourceExhausted);
}

TEST_CASE("datasets: each epoch of a shuffle that repeats has all elements") {
  constexpr int64_t kElements = 7;
  PipelineGraph g;
  g.range("numbers", kElements);
  g.number("buffer", 3);
  g.number("epochs", 3);
  g.add({body_node("shuffled", "ShuffleAndRepeatDataset",
                   {"numbers", "buffer", "buffer", "buffer", "epochs"},
                   with_spec())});
  g.iterate("shuffled");
  const auto session = g.session({});
  initialise(*session);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> got, wanted(kElements);
    for (int64_t i = 0; i < kElements; ++i)
      got.push_back(must(next_number(*session)));
    std::iota(wanted.begin(), wanted.end(), 0);
    CHECK(got != wanted);
    std::ranges::sort(got);
    CHECK(got == wanted);
  }
  CHECK(next_number(*session).status().code() == Code::kOutOfRange);
}

TEST_CASE("datasets: records of files, and files that a session may not read") {
  const testing::TempFolder folder("dataset_runs");
  const std::string lines = (folder.path() / "lines").string();
  std::ofstream(lines) << "a\nbc\r\n\nd";
  const std::string records = (folder.path() / "records").string();
  std::string bytes;
  checkpoint::append_record(bytes, "one");
  checkpoint::append_record(bytes, "two");
  std::ofstream(records) << bytes;
  const std::string fixed = (folder.path() / "fixed").string();
  std::ofstream(fixed) << "hXXYYf";
  const auto read = [&](const std::string& op, const std::string& file,
                        const SessionOptions& options,
                        const std::string& compression = "") {
    PipelineGraph g(DataType::kString);
    g.number("size", 0);
    g.number("one", 1);
    g.number("two", 2);
    g.add({body_const("file", Tensor::scalar(file)),
           body_const("compression", Tensor::scalar(compression))});
    g.add({op == "FixedLengthRecordDatasetV2"
               ? body_node("data", op,
                           {"file", "one", "two", "one", "size", "compression"})
               : body_node("data", op, {"file", "compression", "size"})});
    g.iterate("data");
    return all_texts(*g.session(options));
  };
  using Texts = std::vector<std::string>;
  CHECK(read("TextLineDataset", lines, {}) == Texts{"a", "bc", "", "d"});
  CHECK(read("TFRecordDataset", records, {}) == Texts{"one", "two"});
  CHECK(read("FixedLengthRecordDatasetV2", fixed, {}) == Texts{"XX", "YY"});
  const std::string odd = (folder.path() / "odd").string();
  std::ofstream(odd) << "hXXYf";
  CHECK(read("FixedLengthRecordDatasetV2", odd, {}) ==
        Texts{"InvalidArgument"});
  // Of a compressed file, the size is known at its end.
  const std::string packed = (folder.path() / "packed").string();
  for (const auto& [text, wanted] :
       {std::pair{"hXXYYf", Texts{"XX", "YY"}},
        std::pair{"hXXYYZf", Texts{"XX", "YY", "DataLoss"}},
        std::pair{"hXX", Texts{"DataLoss"}}}) {
    std::ofstream(packed) << testing::deflated(text, true);
    CHECK(read("FixedLengthRecordDatasetV2", packed, {}, "GZIP") == wanted);
  }
  CHECK(read("TFRecordDataset", lines, {}) == Texts{"DataLoss"});
  CHECK(read("TFRecordDataset", lines + "?", {}) == Texts{"NotFound"});
  SessionOptions elsewhere;
  elsewhere.policy.reads = graph::FileScope::beneath("/usr");
  CHECK(read("TextLineDataset", lines, elsewhere) == Texts{"PermissionDenied"});
}

TEST_CASE("datasets: records of files from any byte on") {
  const testing::TempFolder folder("dataset_runs");
  std::string bytes;
  for (const char* record : {"a", "aa", "aaa"})
    checkpoint::append_record(bytes, record);
  const std::string plain = (folder.path() / "plain").string();
  std::ofstream(plain) << bytes;
  const std::string packed = (folder.path() / "packed").string();
  std::ofstream(packed) << testing::deflated(bytes, true);
  using Texts = std::vector<std::string>;
  const auto read = [&](const Texts& files, const std::vector<int64_t>& starts,
                        const std::string& compression = "") {
    PipelineGraph g(DataType::kString);
    g.number("size", 0);
    g.add({body_const("files",
                      Tensor::of<std::string>({int64_t(files.size())}, files)),
           body_const("compression", Tensor::scalar(compression)),
           body_const("starts",
                      Tensor::of<int64_t>({int64_t(starts.size())}, starts)),
           body_node("data", "TFRecordDatasetV2",
                     {"files", "compression", "size", "starts"})});
    g.iterate("data");
    return all_texts(*g.session({}));
  };
  // What TensorFlow 2.21 reads; a record of n bytes takes 16 + n.
  CHECK(read({plain}, {}) == Texts{"a", "aa", "aaa"});
  CHECK(read({plain}, {17}) == Texts{"aa", "aaa"});
  CHECK(read({plain, plain}, {35, 17}) == Texts{"aaa", "aa", "aaa"});
  CHECK(read({packed, packed}, {17, 0}, "GZIP") ==
        Texts{"aa", "aaa", "a", "aa", "aaa"});
  for (const int64_t behind : {int64_t{54}, int64_t{1} << 62}) {
    CHECK(read({plain}, {behind}) == Texts());
    CHECK(read({packed, packed}, {behind, 35}, "GZIP") == Texts{"aaa"});
  }
  CHECK(read({plain}, {1}) == Texts{"DataLoss"});
  CHECK(read({plain, plain}, {1, 35}) == Texts{"DataLoss", "aaa"});
  // These are ours: TensorFlow takes too few, and fails later.
  CHECK(read({plain}, {-1}) == Texts{"InvalidArgument"});
  CHECK(read({plain, plain}, {0}) == Texts{"InvalidArgument"});
}

}  // namespace tagflow::actors
