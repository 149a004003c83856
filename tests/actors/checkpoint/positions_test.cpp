// Checkpoints have the positions of inputs: a training that goes on reads the
// record after the last one that it has used, whenever it was saved.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "actors/session/queue_runners.h"
#include "graph/builder/input.h"
#include "tests/actors/checkpoint/saver_fixture.h"
#include "tests/actors/pending.h"
#include "tests/actors/program.h"
#include "tests/source_path.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

// Records "0", "1", ... in files, which go through queues of a few elements.
struct Records {
  static constexpr int kFiles = 3, kRecords = 10, kEpochs = 4;
  static constexpr int kAll = kFiles * kRecords * kEpochs;
  static constexpr int kBatch = 4;

  explicit Records(bool is_shuffled) : folder("positions") {
    std::vector<std::string> names;
    for (int file = 0; file < kFiles; ++file) {
      names.push_back((folder.path() / std::to_string(file)).string());
      std::ofstream out(names.back());
      for (int i = 0; i < kRecords; ++i) out << file * kRecords + i << "\n";
    }
    const FileNames files = string_input_producer(
        p.s, Tensor::of<std::string>({kFiles}, names),
        {.epochs = kEpochs, .shuffle = is_shuffled, .capacity = 2});
    const Output reader = p.s.op("TextLineReaderV2", {});
    const Output read = p.s.op("ReaderReadV2", {reader, files.queue.handle});
    const Output number = p.s.op("StringToNumber", {Output(read.node(), 1)},
                                 {{"out_type", DataType::kInt32}});
    const BatchOptions options{.batch_size = kBatch, .capacity = 9};
    const Batches batches =
        is_shuffled ? shuffle_batch(p.s, {number}, 4, options, {3, 4})
                    : batch(p.s, {number}, options);
    // A step, which counts them.
    const auto steps = ops::variable(p.s.named("steps"), DataType::kInt64,
                                     PartialShape::scalar());
    const Output used = batches.components[0];
    fetch = used.name();
    step = ops::assign_add(p.s.with_control_dependencies({used}), steps,
                           Tensor::scalar<int64_t>(1))
               .name();
    init =
        ops::group(p.s, {files.initializer,
                         ops::assign(p.s, steps, Tensor::scalar<int64_t>(0))})
            .name();
    runners = files.runners;
    runners.insert(runners.end(), batches.runners.begin(),
                   batches.runners.end());
    REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
  }

  tagflow::testing::TempFolder folder;
  Program p;
  std::string init, fetch, step;
  std::vector<QueueRunnerDef> runners;
};

// A part of a training: goes on from the checkpoint of the folder, takes so
// many batches, or those that are left, and saves, while its queues are filled.
// Returns the records.
std::vector<int> train_on(const Records& input, const Folder& checkpoints,
                          int batches) {
  const auto session = make_session({}, input.p.graph);
  const auto saver = make_saver(*session, {.folder = checkpoints.path()});
  if (!must(saver->restore()))
    must(session->run({}, {}, {input.init}, within_a_minute()));
  Coordinator threads;
  must(start_queue_runners(*session, input.runners, threads));
  std::vector<int> records;
  for (int i = 0; i < batches; ++i) {
    const auto got =
        session->run({}, {input.fetch}, {input.step}, within_a_minute());
    if (!got.ok()) {
      CHECK(got.status().code() == Code::kOutOfRange);
      break;
    }
    for (const int32_t record : (*got)[0].flat<int32_t>())
      records.push_back(record);
  }
  must(saver->save(int64_t(records.size())));
  must(saver->close());
  CHECK(saver->left_out().empty());
  threads.request_stop();
  must(threads.join());
  return records;
}

std::vector<int> train_in_parts(const Records& input, int batches) {
  const Folder checkpoints("positions");
  std::vector<int> all;
  for (;;) {
    const std::vector<int> part = train_on(input, checkpoints, batches);
    if (part.empty()) return all;
    all.insert(all.end(), part.begin(), part.end());
  }
}

}  // namespace

TEST_CASE("a training that is saved and resumed reads each record in turn") {
  const Records input(/*is_shuffled=*/false);
  std::vector<int> expected;
  for (int i = 0; i < Records::kAll; ++i)
    expected.push_back(i % (Records::kAll / Records::kEpochs));
  for (const int batches : {1, 2, 3, 7}) {
    CAPTURE(batches);
    const std::vector<int> records = train_in_parts(input, batches);
    CHECK_MESSAGE(records == expected,
                  fmt::format("{}", fmt::join(records, " ")));
  }
}

TEST_CASE("a training that shuffles reads each record as often as it would") {
  const Records input(/*is_shuffled=*/true);
  std::vector<int> records = train_in_parts(input, 3);
  CHECK(!std::ranges::is_sorted(records));
  std::ranges::sort(records);
  REQUIRE(records.size() == Records::kAll);
  for (int i = 0; i < Records::kAll; ++i)
    CHECK(records[size_t(i)] == i / Records::kEpochs);
}

TEST_CASE("a snapshot is taken while a step waits for what nobody offers") {
  Program p;
  const ops::Queue queue =
      ops::fifo_queue(p.s.named("q"), {DataType::kFloat}, {.capacity = 1});
  const Output get = ops::dequeue(p.s.named("get"), queue)[0];
  const Output put =
      ops::enqueue(p.s.named("put"), queue, {Tensor::scalar(1.0f)});
  const auto session = make_session({}, p.graph);
  Pending waiting(*session, get.name());
  const auto snapshots = must(Snapshots::create(*session));
  const Snapshot snapshot = must(snapshots->take());
  CHECK(snapshot.contents.size() == 1);
  must(session->run({}, {}, {put.name()}, within_a_minute()));
  CHECK(must(waiting.get())[0].scalar_value<float>() == 1);
}

TEST_CASE("room is made for waiting enqueues, and no longer than that") {
  Program p;
  const ops::Queue queue =
      ops::fifo_queue(p.s.named("q"), {DataType::kInt32},
                      {.capacity = 1, .shapes = {PartialShape::scalar()}});
  const Output put = ops::enqueue(p.s.named("put"), queue, {Tensor::scalar(1)});
  const Output many = ops::enqueue_many(p.s.named("many"), queue,
                                        {Tensor::vector<int32_t>({2, 3, 4})});
  const Output size = ops::queue_size(p.s.named("size"), queue);
  const Output after =
      ops::queue_size(p.s.with_control_dependencies({many}), queue);
  const auto session = make_session({}, p.graph);
  must(session->run({}, {}, {put.name()}, within_a_minute()));
  Pending waiting(*session, after.name());
  const auto snapshots = must(Snapshots::create(*session));
  const Snapshot snapshot = must(snapshots->take());
  CHECK(must(waiting.get())[0].scalar_value<int32_t>() == 4);
  // It is full again.
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(50);
  CHECK(session->run({}, {}, {put.name()}, soon).status().code() ==
        Code::kDeadlineExceeded);
  // And is restored with all of them.
  const auto other = make_session({}, p.graph);
  must(must(Snapshots::create(*other))->restore(snapshot));
  CHECK(must(other->run({}, {size.name()}))[0].scalar_value<int32_t>() == 4);
}

TEST_CASE("an iterator goes on after the element that it has given") {
  const std::string path = source_path("tests/apps/graphs/dataset.pbtxt");
  const auto next = [](Session& session) {
    return session.run({}, {"squares:0"}, {}, within_a_minute());
  };
  const Folder folder("iterator");
  {
    const auto session = make_session({}, must(graph::load_graph(path)));
    CHECK(elements<int64_t>(must(next(*session))[0]) ==
          std::vector<int64_t>{0, 9, 36});
    const auto saver = make_saver(*session, {.folder = folder.path()});
    must(saver->save(1));
    must(saver->close());
    CHECK(saver->left_out().empty());
  }
  for (int again = 0; again < 2; ++again) {
    const auto session = make_session({}, must(graph::load_graph(path)));
    const auto saver = make_saver(*session, {.folder = folder.path()});
    REQUIRE(must(saver->restore()).has_value());
    if (again == 0) {  // it is saved as it was restored
      must(saver->save(2));
      must(saver->close());
      continue;
    }
    CHECK(elements<int64_t>(must(next(*session))[0]) ==
          std::vector<int64_t>{81});
    must(saver->save(3));
    CHECK(next(*session).status().code() == Code::kOutOfRange);
  }
  const auto session = make_session({}, must(graph::load_graph(path)));
  const auto saver = make_saver(*session, {.folder = folder.path()});
  REQUIRE(must(saver->restore()).has_value());
  CHECK(next(*session).status().code() == Code::kOutOfRange);
}
