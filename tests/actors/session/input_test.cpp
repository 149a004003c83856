// Input pipelines of queues: CSV lines and Examples in TFRecords, from files to
// batches.
#include "graph/builder/input.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "actors/session/queue_runners.h"
#include "devices/files/record_file.h"
#include "graph/proto/example.pb.h"
#include "tests/actors/program.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::message_of;
using graph::testing::must;

namespace {

struct InputFolder : tagflow::testing::TempFolder {
  InputFolder() : TempFolder("input") {}
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
  }
};

// All batches of `fetches`, until the input ends.
std::vector<std::vector<Tensor>> batches_of(
    const Program& program, const std::vector<std::string>& initializers,
    std::initializer_list<std::vector<QueueRunnerDef>> parts,
    const Outputs& fetches) {
  REQUIRE_MESSAGE(program.s.ok(), program.s.status().to_string());
  const auto session = make_session({}, program.graph);
  must(session->run({}, {}, initializers, within_a_minute()));
  std::vector<QueueRunnerDef> runners;
  for (const auto& part : parts)
    runners.insert(runners.end(), part.begin(), part.end());
  Coordinator threads;
  must(start_queue_runners(*session, runners, threads));
  std::vector<std::string> names;
  for (const Output& fetch : fetches) names.push_back(fetch.name());
  std::vector<std::vector<Tensor>> all;
  for (;;) {
    auto got = session->run({}, names, {}, within_a_minute());
    if (!got.ok()) {
      CHECK(got.status().code() == Code::kOutOfRange);
      break;
    }
    all.push_back(*std::move(got));
  }
  must(threads.join());
  return all;
}

}  // namespace

TEST_CASE("lines of CSV become batches of numbers, epoch after epoch") {
  const InputFolder folder;
  folder.write("a.csv", "x,y\n1,0.5\n2,1.5\n");
  folder.write("b.csv", "x,y\n3,2.5\n4,\n5,4.5\n");
  Program p;
  const MatchedNames names =
      match_filenames_once(p.s, Tensor::scalar(folder / "*.csv"));
  const FileNames files =
      string_input_producer(p.s, names.names, {.epochs = 2, .shuffle = false});
  const Output reader =
      p.s.op("TextLineReaderV2", {}, {{"skip_header_lines", int64_t(1)}});
  const Output read = p.s.op("ReaderReadV2", {reader, files.queue.handle});
  const Output fields =
      p.s.op("DecodeCSV",
             {Output(read.node(), 1), p.s.constant(Tensor::scalar(int32_t(0))),
              p.s.constant(Tensor::scalar(-1.0f))},
             {{"OUT_TYPE", std::vector{DataType::kInt32, DataType::kFloat}}});
  const Batches batches =
      batch(p.s, {Output(fields.node(), 0), Output(fields.node(), 1)},
            {.batch_size = 4, .allow_smaller_final_batch = true});
  const auto got =
      batches_of(p, {names.initializer.name(), files.initializer.name()},
                 {files.runners, batches.runners}, batches.components);
  std::vector<int32_t> x;
  std::vector<float> y;
  for (const auto& one : got) {
    for (const int32_t value : one[0].flat<int32_t>()) x.push_back(value);
    for (const float value : one[1].flat<float>()) y.push_back(value);
  }
  CHECK(got.size() == 3);
  CHECK(x == std::vector<int32_t>{1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  CHECK(y ==
        std::vector<float>{0.5, 1.5, 2.5, -1, 4.5, 0.5, 1.5, 2.5, -1, 4.5});
}

TEST_CASE("examples in TFRecords are read, shuffled and parsed") {
  const InputFolder folder;
  std::string bytes;
  for (int64_t i = 0; i < 100; ++i) {
    tensorflow::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["i"].mutable_int64_list()->add_value(i);
    features["x"].mutable_float_list()->add_value(float(i) / 2);
    checkpoint::append_record(bytes, example.SerializeAsString());
  }
  folder.write("records", bytes);
  Program p;
  const FileNames files = string_input_producer(
      p.s, Tensor::vector<std::string>({folder / "records"}), {.epochs = 1});
  const Output reader = p.s.op("TFRecordReaderV2", {});
  const Output read = p.s.op(
      "ReaderReadUpToV2",
      {reader, files.queue.handle, p.s.constant(Tensor::scalar<int64_t>(8))});
  const Batches batches = shuffle_batch(
      p.s, {Output(read.node(), 1)}, 20,
      {.batch_size = 10, .capacity = 60, .threads = 2, .enqueue_many = true});
  const auto texts = [&](std::vector<std::string> keys) {
    return p.s.constant(Tensor::of<std::string>(
        {int64_t(keys.size())}, std::span<const std::string>(keys)));
  };
  const Output parsed = p.s.op(
      "ParseExampleV2",
      {batches.components[0], texts({}), texts({}), texts({"i", "x"}),
       texts({}), p.s.constant(Tensor::vector<int64_t>({})),
       p.s.constant(Tensor::vector<float>({}))},
      {{"num_sparse", int64_t(0)},
       {"sparse_types", std::vector<DataType>()},
       {"Tdense", std::vector{DataType::kInt64, DataType::kFloat}},
       {"ragged_value_types", std::vector<DataType>()},
       {"ragged_split_types", std::vector<DataType>()},
       {"dense_shapes", std::vector<PartialShape>{PartialShape::scalar(),
                                                  PartialShape::scalar()}}});
  const auto got = batches_of(
      p, {files.initializer.name()}, {files.runners, batches.runners},
      {Output(parsed.node(), 0), Output(parsed.node(), 1)});
  std::vector<int64_t> order;
  for (const auto& one : got)
    for (int64_t k = 0; k < one[0].num_elements(); ++k) {
      order.push_back(one[0].flat<int64_t>()[size_t(k)]);
      CHECK(one[1].flat<float>()[size_t(k)] == float(order.back()) / 2);
    }
  CHECK(!std::ranges::is_sorted(order));
  std::ranges::sort(order);
  REQUIRE(order.size() == 100);
  for (int64_t i = 0; i < 100; ++i) CHECK(order[size_t(i)] == i);
}

TEST_CASE("slices of tensors are elements") {
  Program p;
  const Slices slices = slice_input_producer(
      p.s,
      {p.s.constant(Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})),
       p.s.constant(Tensor::vector<int32_t>({7, 8, 9}))},
      {.epochs = 1, .shuffle = false});
  const Batches batches = batch(p.s, slices.components, {.batch_size = 2});
  const auto got =
      batches_of(p, {slices.initializer.name()},
                 {slices.runners, batches.runners}, batches.components);
  // The last slice fills no batch.
  REQUIRE(got.size() == 1);
  CHECK(identical(got[0][0], Tensor::of<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(identical(got[0][1], Tensor::vector<int32_t>({7, 8})));
}

TEST_CASE("options of pipelines are checked") {
  const auto refuses = [](const auto& build, std::string_view what) {
    Program p;
    build(p);
    CHECK(message_of(p.s.status(), Code::kInvalidArgument).find(what) !=
          std::string::npos);
  };
  const auto number = [](const Program& p) {
    return p.s.constant(Tensor::scalar(1.0f));
  };
  refuses([&](Program& p) { batch(p.s, {number(p)}, {.batch_size = 0}); },
          "batch_size 0");
  refuses([&](Program& p) { batch(p.s, {}, {}); }, "no components");
  refuses(
      [&](Program& p) {
        batch(p.s, {p.input("x", DataType::kFloat, {-1})}, {});
      },
      "without padding the shape must be known");
  refuses([&](Program& p) { shuffle_batch(p.s, {number(p)}, 32, {}); },
          "min_after_dequeue, 32, must be less");
  refuses([&](Program& p) { string_input_producer(p.s, number(p)); },
          "must be a vector of string");
  refuses([&](Program& p) { slice_input_producer(p.s, {number(p)}); },
          "has not a known number of rows");
}
