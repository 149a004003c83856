// Datasets that choose among elements, or group them: what they refuse, and
// runs that give up while these wait.
#include <doctest/doctest.h>

#include "tests/actors/pending.h"
#include "tests/actors/session/pipeline_graph.h"

namespace tagflow::actors {

namespace {

const AttrMap kNoTypes = {{"Targuments", std::vector<DataType>()}};

// The error of "data", a node of that op with these inputs.
std::string refusal(PipelineGraph g, const std::string& op,
                    std::vector<std::string> inputs, AttrMap attrs) {
  g.add({body_node("data", op, std::move(inputs), std::move(attrs))});
  g.iterate("data");
  return first_error(g);
}

// Some numbers, and datasets.
PipelineGraph with_inputs() {
  PipelineGraph g;
  for (const int64_t n : {-2, -1, 0, 1, 2}) g.number(fmt::format("n{}", n), n);
  g.range("numbers", 4);
  g.add({body_const("half", Tensor::scalar(0.5f)),
         body_node("halves", "TensorDataset", {"half"},
                   with_types({DataType::kFloat}, "Toutput_types")),
         body_node("pairs", "TensorDataset", {"n1", "n2"},
                   with_types({kLong, kLong}, "Toutput_types"))});
  return g;
}

// Groups of two, by the functions "key" and "reduce".
AttrMap grouping(std::vector<DataType> key_types = {}) {
  return with_spec(
      {{"key_func", call_of("key")},
       {"reduce_func", call_of("reduce")},
       {"window_size_func", call_of("two")},
       {"Tkey_func_other_arguments", std::move(key_types)},
       {"Treduce_func_other_arguments", std::vector<DataType>()},
       {"Twindow_size_func_other_arguments", std::vector<DataType>()}});
}

void define_reduce(PipelineGraph& g) {
  g.define(graph::function("reduce", {"key: int64", "window: variant"},
                           {"d: variant"}, {}, {{"d", "window"}}));
  g.define(graph::function("two", {"key: int64"}, {"size: int64"},
                           {body_const("two", Tensor::scalar(int64_t{2}))},
                           {{"size", "two:output:0"}}));
}

}  // namespace

TEST_CASE("datasets: a shard is one of some") {
  const auto error_of = [](const char* shards, const char* index) {
    return refusal(with_inputs(), "ShardDataset", {"numbers", shards, index},
                   with_spec());
  };
  CHECK(says(error_of("n0", "n0"), "num_shards must be positive, but is 0"));
  CHECK(says(error_of("n-2", "n0"), "num_shards must be positive"));
  CHECK(says(error_of("n2", "n2"), "index must be from 0 to 1, but is 2"));
  CHECK(says(error_of("n2", "n-1"), "index must be from 0 to 1, but is -1"));
  CHECK(says(error_of("n-1", "n0"), "FailedPrecondition"));
}

TEST_CASE("datasets: only numbers and texts of one component are unique") {
  CHECK(says(refusal(with_inputs(), "UniqueDataset", {"halves"},
                     with_spec({}, DataType::kFloat)),
             "must be of type int32, int64 or string, not float"));
  CHECK(says(refusal(with_inputs(), "UniqueDataset", {"pairs"},
                     with_types({kLong, kLong}, "output_types")),
             "must be of one component, but they are of 2"));
}

TEST_CASE("datasets: one is selected by a number, among those that are alike") {
  const auto error_of = [](const char* selector, const char* second) {
    return refusal(with_inputs(), "DirectedInterleaveDataset",
                   {selector, "numbers", second},
                   with_spec({{"N", int64_t{2}}}));
  };
  CHECK(says(error_of("halves", "numbers"), "the selector is of type float"));
  CHECK(says(error_of("pairs", "numbers"), "the selector has elements of 2"));
  CHECK(says(error_of("numbers", "halves"), "elements of different types"));
  // It is found out late that the selector's elements are no scalars.
  PipelineGraph vectors = with_inputs();
  vectors.add(
      {body_node("batches", "BatchDataset", {"numbers", "n2"}, with_spec())});
  CHECK(says(refusal(std::move(vectors), "DirectedInterleaveDataset",
                     {"batches", "numbers"}, with_spec({{"N", int64_t{1}}})),
             "the selector: component 0 of the element is int64[2]"));
}

TEST_CASE("datasets: rows of a sparse tensor have an order, and sizes") {
  using Longs = std::vector<int64_t>;
  const auto error_of = [](const Shape& shape, const Longs& indices,
                           const Longs& dense_shape) {
    PipelineGraph g;
    g.add(
        {body_const("indices", Tensor::of<int64_t>(shape, indices)),
         body_const("values", Tensor::vector<float>({1, 2})),
         body_const("shape", Tensor::of<int64_t>({int64_t(dense_shape.size())},
                                                 dense_shape))});
    return refusal(std::move(g), "SparseTensorSliceDataset",
                   {"indices", "values", "shape"},
                   {{"Tvalues", DataType::kFloat}});
  };
  CHECK(says(error_of({2, 1}, {2, 1}, {4}), "but 1 follows 2 in row 1"));
  CHECK(says(error_of({2, 1}, {2, 1}, {4}), "Unimplemented"));
  CHECK(says(error_of({2}, {1, 2}, {4}), "indices must be a matrix"));
  CHECK(says(error_of({1, 2}, {1, 2}, {4, 4}), "for each of 2 values"));
  CHECK(says(error_of({2, 1}, {1, 2}, {4, 4}), "for each of 2 dimensions"));
  CHECK(says(error_of({2, 0}, {}, {}), "for each of 0 dimensions, at least"));
  CHECK(says(error_of({2, 1}, {1, 2}, {-4}), "dense_shape: "));
}

TEST_CASE("datasets: a window has a key, and is reduced to a dataset") {
  const auto error_of = [](graph::FunctionDef key, graph::FunctionDef reduce) {
    PipelineGraph g = with_inputs();
    g.define(std::move(key));
    g.define(std::move(reduce));
    g.define(graph::function("two", {"key: int64"}, {"size: int64"},
                             {body_const("two", Tensor::scalar(int64_t{2}))},
                             {{"size", "two:output:0"}}));
    return refusal(std::move(g), "GroupByWindowDataset", {"numbers"},
                   grouping());
  };
  const auto key =
      graph::function("key", {"x: int64"}, {"key: int64"},
                      {body_const("all", Tensor::scalar(int64_t{0}))},
                      {{"key", "all:output:0"}});
  const auto text = graph::function("key", {"x: int64"}, {"key: string"},
                                    {body_const("all", Tensor::scalar(""))},
                                    {{"key", "all:output:0"}});
  const auto same = graph::function("reduce", {"key: int64", "window: variant"},
                                    {"d: variant"}, {}, {{"d", "window"}});
  const auto number =
      graph::function("reduce", {"key: int64", "window: variant"}, {"d: int64"},
                      {}, {{"d", "key"}});
  const auto texts = graph::function(
      "reduce", {"key: int64", "window: variant"}, {"d: variant"},
      {body_const("text", Tensor::scalar("")),
       body_node("data", "TensorDataset", {"text:output:0"},
                 with_types({DataType::kString}, "Toutput_types"))},
      {{"d", "data:handle:0"}});
  const auto alone = graph::function("reduce", {"key: int64"}, {"d: int64"}, {},
                                     {{"d", "key"}});
  CHECK(says(error_of(text, same), "key_func must return one int64, not"));
  CHECK(
      says(error_of(key, number), "result of the function must be a dataset"));
  CHECK(says(error_of(key, texts), "is of type string, not int64"));
  CHECK(says(error_of(key, alone), "has 1 arguments, but gets 2"));
}

TEST_CASE("datasets: a parallel filter has some calls, which give a bool") {
  PipelineGraph g = with_inputs();
  g.define(
      graph::function("same", {"x: int64"}, {"y: int64"}, {}, {{"y", "x"}}));
  AttrMap attrs = with_spec(kNoTypes);
  attrs["predicate"] = call_of("same");
  CHECK(says(
      refusal(with_inputs(), "ParallelFilterDataset", {"numbers", "n0"}, attrs),
      "num_parallel_calls must be positive, or -1"));
  CHECK(says(
      refusal(std::move(g), "ParallelFilterDataset", {"numbers", "n2"}, attrs),
      "the predicate must return one bool, not int64"));
}

TEST_CASE("datasets: a run that gives up leaves a choice to the next one") {
  struct Case {
    const char* op;
    std::vector<std::string> inputs;
    AttrMap attrs;
    int waits;       // for one element
    int64_t number;  // that it is
  };
  const std::vector<DataType> queue{DataType::kResource};
  AttrMap passes = with_spec({{"Targuments", queue}});
  passes["predicate"] = call_of("passes");
  for (const Case& each : std::vector<Case>{
           {"ShardDataset", {"waiting", "n2", "n1"}, with_spec(), 2, 11},
           {"UniqueDataset", {"waiting"}, with_spec(), 1, 10},
           {"IgnoreErrorsDataset", {"waiting"}, with_spec(), 1, 10},
           {"AssertCardinalityDataset", {"waiting", "n2"}, with_spec(), 1, 10},
           {"DirectedInterleaveDataset",
            {"numbers", "waiting", "numbers"},
            with_spec({{"N", int64_t{2}}}),
            1,
            10},
           {"ParallelFilterDataset", {"numbers", "queue", "n2"}, passes, 3, 2},
           {"GroupByWindowDataset",
            {"numbers", "queue"},
            grouping(queue),
            2,
            0}}) {
    CAPTURE(each.op);
    PipelineGraph g;
    add_waiting(g);
    g.number("n1", 1);
    g.number("n2", 2);
    define_reduce(g);
    // The same key for all, and whether x + 10 > 11.
    const std::vector<std::string> args{"x: int64", "queue: resource"};
    const auto waited =
        body_node("wait", "PartitionedCall", {"x", "queue"},
                  {{"f", call_of("wait")},
                   {"Tin", std::vector<DataType>{kLong, DataType::kResource}},
                   {"Tout", std::vector<DataType>{kLong}}});
    g.define(graph::function(
        "key", args, {"key: int64"},
        {waited,
         body_node("none", "ZerosLike", {"wait:output:0"}, {{"T", kLong}})},
        {{"key", "none:y:0"}}));
    g.define(graph::function(
        "passes", args, {"yes: bool"},
        {waited, body_const("most", Tensor::scalar(int64_t{11})),
         body_node("greater", "Greater", {"wait:output:0", "most:output:0"},
                   {{"T", kLong}})},
        {{"yes", "greater:z:0"}}));
    g.add({body_node("data", each.op, each.inputs, each.attrs)});
    g.iterate("data");
    const auto session = g.session({});
    initialise(*session);
    Pending late(*session, "next");
    for (int i = 1; i < each.waits; ++i)
      must(session->run({}, {}, {"put"}, within_a_minute()));
    while (session->counters().waiting == 0) std::this_thread::yield();
    late.token.cancel();
    CHECK(late.get().status().code() == Code::kCancelled);
    must(session->run({}, {}, {"put"}, within_a_minute()));
    CHECK(must(next_number(*session)) == each.number);
  }
}

TEST_CASE("datasets: a run may give up although all elements are errors") {
  PipelineGraph g = with_inputs();
  g.define(graph::function("fail", {"x: int64"}, {"y: int64"},
                           {body_const("zero", Tensor::scalar(int64_t{0})),
                            body_node("quotient", "FloorDiv",
                                      {"x", "zero:output:0"}, {{"T", kLong}})},
                           {{"y", "quotient:z:0"}}));
  g.add({body_node("forever", "RepeatDataset", {"numbers", "n-1"}, with_spec()),
         body_node("failing", "MapDataset", {"forever"}, calling("fail")),
         body_node("none", "IgnoreErrorsDataset", {"failing"}, with_spec())});
  g.iterate("none");
  const auto session = g.session({});
  initialise(*session);
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(30);
  CHECK(next_number(*session, soon).status().code() == Code::kDeadlineExceeded);
}

}  // namespace tagflow::actors
