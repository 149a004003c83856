// Pipelines that a graph describes wrongly, or that ask for too much.
#include <doctest/doctest.h>

#include <limits>

#include "tests/actors/session/pipeline_graph.h"
#include "tests/actors/session/pipeline_memory.h"

namespace tagflow::actors {

namespace {

constexpr int64_t kHuge = int64_t{1} << 60;

// A function that makes 0, 1, 2 of any number.
graph::FunctionDef to_range() {
  return graph::function(
      "to_range", {"x: int64"}, {"d: variant"},
      {body_const("begin", Tensor::scalar(int64_t{0})),
       body_const("end", Tensor::scalar(int64_t{3})),
       body_const("step", Tensor::scalar(int64_t{1})),
       body_node("range", "RangeDataset",
                 {"begin:output:0", "end:output:0", "step:output:0"},
                 with_spec())},
      {{"d", "range:handle:0"}});
}

}  // namespace

TEST_CASE("datasets: output_types must be those of the elements") {
  const auto pair = std::vector<DataType>{kLong, kLong};
  for (const bool is_range : {false, true}) {
    PipelineGraph g;
    g.range("numbers", 3);
    g.number("count", 2);
    g.add({is_range ? body_node("lie", "RangeDataset",
                                {"numbers/0", "count", "numbers/1"},
                                with_types(pair, "output_types"))
                    : body_node("lie", "TakeDataset", {"numbers", "count"},
                                with_types(pair, "output_types"))});
    g.iterate("lie");
    CHECK(says(first_error(g),
               "components of types (int64), but output_types are (int64, "
               "int64)"));
  }
}

TEST_CASE("datasets: what functions give must be what the dataset has") {
  PipelineGraph mapped;
  mapped.define(graph::function(
      "nothing", {"x: int64"}, {"y: float"},
      {body_node("cast", "Cast", {"x"},
                 {{"SrcT", kLong}, {"DstT", DataType::kFloat}})},
      {{"y", "cast:y:0"}}));
  mapped.range("numbers", 3);
  mapped.add({body_node("lie", "MapDataset", {"numbers"}, calling("nothing"))});
  mapped.iterate("lie");
  CHECK(says(first_error(mapped), "are not of the types of the elements"));

  PipelineGraph flat(DataType::kFloat);
  flat.define(to_range());
  flat.range("numbers", 3);
  AttrMap attrs = with_types({DataType::kFloat}, "output_types");
  attrs["f"] = call_of("to_range");
  attrs["Targuments"] = std::vector<DataType>();
  flat.add({body_node("lie", "FlatMapDataset", {"numbers"}, attrs)});
  flat.iterate("lie");
  CHECK(says(first_error(flat), "is of type int64, not float"));
}

TEST_CASE("datasets: there are as many padded shapes as components") {
  PipelineGraph g;
  g.range("numbers", 3);
  g.number("two", 2);
  g.add({body_node("both", "ZipDataset", {"numbers", "numbers"},
                   [] {
                     AttrMap attrs = with_types({kLong, kLong}, "output_types");
                     attrs["N"] = int64_t{2};
                     return attrs;
                   }()),
         body_const("scalar", Tensor::vector<int64_t>({}))});
  AttrMap attrs = with_types({kLong, kLong}, "Toutput_types");
  attrs["N"] = int64_t{1};
  g.add({body_node("padded", "PaddedBatchDataset",
                   {"both", "two", "scalar", "two", "two"}, attrs)});
  g.iterate("padded");
  CHECK(says(first_error(g), "there are not as many padded_shapes"));
}

TEST_CASE("datasets: a graph that asks for any number of calls gets some") {
  PipelineGraph g;
  g.define(graph::function("same", {"x: int64"}, {"y: int64"},
                           {body_node("y", "Identity", {"x"}, {{"T", kLong}})},
                           {{"y", "y:output:0"}}));
  g.range("numbers", kHuge);
  g.number("calls", kHuge);
  g.add({body_node("mapped", "ParallelMapDatasetV2", {"numbers", "calls"},
                   calling("same"))});
  g.iterate("mapped");
  const auto session = g.session({});
  initialise(*session);
  for (int64_t i = 0; i < 100; ++i) CHECK(must(next_number(*session)) == i);
}

TEST_CASE("datasets: no number of calls is an error") {
  PipelineGraph g;
  g.define(to_range());
  g.range("numbers", 3);
  g.number("none", 0);
  g.number("one", 1);
  g.add({body_node("merged", "ParallelInterleaveDatasetV2",
                   {"numbers", "one", "one", "none"}, calling("to_range"))});
  g.iterate("merged");
  CHECK(says(first_error(g), "num_parallel_calls must be positive, or -1"));
}

TEST_CASE(
    "datasets: an interleave needs a buffer for the elements of streams") {
  PipelineGraph g;
  g.define(to_range());
  g.range("numbers", 3);
  g.number("none", 0);
  g.number("one", 1);
  g.add({body_node("merged", "LegacyParallelInterleaveDatasetV2",
                   {"numbers", "one", "one", "none", "one"},
                   calling("to_range"))});
  g.iterate("merged");
  CHECK(says(first_error(g), "buffer_output_elements must be at least 1"));
}

TEST_CASE("datasets: an interleave of any number of places ends") {
  PipelineGraph g;
  g.define(to_range());
  g.range("numbers", 2);
  g.number("places", kHuge);
  g.number("one", 1);
  g.add({body_node("merged", "InterleaveDataset", {"numbers", "places", "one"},
                   calling("to_range"))});
  g.iterate("merged");
  const auto session = g.session({});
  initialise(*session);
  for (const int64_t wanted : {0, 0, 1, 1, 2, 2})
    CHECK(must(next_number(*session)) == wanted);
  CHECK(next_number(*session).status().code() == Code::kOutOfRange);
}

TEST_CASE("datasets: a shuffle has one epoch, more, or no end") {
  for (const int64_t count : {int64_t{0}, int64_t{-5}}) {
    PipelineGraph g;
    g.range("numbers", 3);
    g.number("one", 1);
    g.number("count", count);
    g.add({body_node("shuffled", "ShuffleAndRepeatDataset",
                     {"numbers", "one", "one", "one", "count"}, with_spec())});
    g.iterate("shuffled");
    CHECK(says(first_error(g), "count must be positive, or -1"));
  }
  // Of nothing, as often as it may be, until somebody ends it.
  PipelineGraph g;
  g.range("numbers", 0);
  g.number("one", 1);
  g.number("count", kHuge);
  g.add({body_node("shuffled", "ShuffleAndRepeatDataset",
                   {"numbers", "one", "one", "one", "count"}, with_spec())});
  g.iterate("shuffled");
  const auto session = g.session({});
  initialise(*session);
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(50);
  CHECK(next_number(*session, soon).status().code() == Code::kDeadlineExceeded);
}

TEST_CASE("datasets: whoever waits is answered when memory is short") {
  PipelineGraph g;
  g.define(
      graph::function("twice", {"x: int64"}, {"y: int64"},
                      {body_node("sum", "AddV2", {"x", "x"}, {{"T", kLong}})},
                      {{"y", "sum:z:0"}}));
  g.range("numbers", 1000);
  g.number("two", 2);
  g.add(
      {body_node("mapped", "ParallelMapDatasetV2", {"numbers", "two"},
                 calling("twice")),
       body_node("ahead", "PrefetchDataset", {"mapped", "two"}, with_spec())});
  g.iterate("ahead");
  const auto session = g.session({});
  check_without_memory(*session);
}

}  // namespace tagflow::actors
