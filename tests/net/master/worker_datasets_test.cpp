// Datasets on the workers of a cluster, whose functions run there.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "tests/actors/recorded_pipelines.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/net/master/worker_shards.h"

namespace tagflow::net {
namespace {

using namespace testing;  // NOLINT: for tests
using actors::calling;
using actors::initialise;
using actors::next_number;
using actors::PipelineGraph;
using graph::body_node;
using graph::testing::contains;

Workers some_workers(uint32_t tasks, bool has_tls = false) {
  std::vector<WorkerOptions> wanted;
  for (uint32_t task = 0; task < tasks; ++task) {
    wanted.push_back(local_worker(task));
    wanted.back().workers = 2;
    wanted.back().policy = graph::OpPolicy();
  }
  return Workers(std::move(wanted), has_tls);
}

std::unique_ptr<actors::Session> session_on(const Workers& workers,
                                            const graph::Graph& graph,
                                            actors::SessionOptions options) {
  options.backend = workers.cluster;
  return actors::make_session(options, graph);
}

// Of the numbers 0, 2, 4, ...
PipelineGraph twice_graph() {
  PipelineGraph g;
  g.define(graph::function(
      "twice", {"x: int64"}, {"y: int64"},
      {body_node("sum", "AddV2", {"x", "x"}, {{"T", actors::kLong}})},
      {{"y", "sum:z:0"}}));
  g.range("numbers", 100);
  g.add({body_node("mapped", "MapDataset", {"numbers"}, calling("twice"))});
  g.iterate("mapped");
  return g;
}

// "next0" and "next1" are random numbers that functions of two workers draw.
PipelineGraph drawing_graph() {
  using actors::with_spec;
  constexpr DataType kFloat = DataType::kFloat;
  PipelineGraph g;
  g.define(
      graph::function("draw", {"x: int64"}, {"y: float"},
                      {graph::body_const("shape", Tensor::vector<int32_t>({4})),
                       body_node("noise", "RandomUniform", {"shape:output:0"},
                                 {{"T", DataType::kInt32}, {"dtype", kFloat}})},
                      {{"y", "noise:output:0"}}));
  g.number("0", 0);
  g.number("10", 10);
  g.number("1", 1);
  for (const std::string task : {"0", "1"}) {
    const auto add = [&](const std::string& name, const char* op,
                         std::vector<std::string> inputs, AttrMap attrs) {
      graph::NodeDef node =
          body_node(name + task, op, std::move(inputs), std::move(attrs));
      node.device = "/job:worker/task:" + task;
      g.add({std::move(node)});
    };
    add("numbers", "RangeDataset", {"0", "10", "1"}, with_spec());
    add("draw", "MapDataset", {"numbers" + task},
        with_spec({{"f", graph::call_of("draw")},
                   {"Targuments", std::vector<DataType>()}},
                  kFloat));
    add("it", "IteratorV2", {},
        with_spec(
            {{"shared_name", std::string()}, {"container", std::string()}},
            kFloat));
    add("init", "MakeIterator", {"draw" + task, "it" + task}, {});
    add("next", "IteratorGetNext", {"it" + task}, with_spec({}, kFloat));
  }
  return g;
}

}  // namespace

TEST_CASE("recorded pipelines of datasets run on workers") {
  const graph::Graph graph = actors::recorded_graph("datasets");
  const auto cases = actors::recorded_pipelines();
  for (const uint32_t tasks : {1, 2}) {
    const Workers workers = some_workers(tasks, /*has_tls=*/tasks == 2);
    const auto session = session_on(workers, graph, {});
    for (const actors::RecordedPipeline& recorded : cases)
      check_pipeline(*session, recorded);
  }
}

TEST_CASE("functions of a dataset read the files of their worker") {
  using actors::with_spec;
  constexpr DataType kText = DataType::kString;
  const Folder folder("functions");
  for (const char* name : {"a", "b"})
    std::ofstream(folder.path(name)) << "this is " << name;
  PipelineGraph g(kText);
  g.define(graph::function("contents", {"name: string"}, {"text: string"},
                           {body_node("read", "ReadFile", {"name"})},
                           {{"text", "read:contents:0"}}));
  g.add({graph::body_const("names", Tensor::vector<std::string>({"a", "b"})),
         body_node("slices", "TensorSliceDataset", {"names"},
                   {{"Toutput_types", std::vector<DataType>{kText}},
                    {"output_shapes",
                     std::vector<PartialShape>{PartialShape::scalar()}}}),
         body_node("mapped", "MapDataset", {"slices"},
                   with_spec({{"f", graph::call_of("contents")},
                              {"Targuments", std::vector<DataType>()}},
                             kText))});
  g.iterate("mapped");
  for (const bool may_read : {true, false}) {
    std::vector<WorkerOptions> wanted = {local_worker(0)};
    if (may_read)
      wanted[0].policy.reads = graph::FileScope::beneath(folder.path());
    const Workers workers(std::move(wanted), false);
    const auto session = session_on(workers, g.graph, {});
    const auto begun =
        session->run({}, {}, {"init"}, actors::within_a_minute()).status();
    if (!may_read) {
      CHECK(begun.code() == Code::kPermissionDenied);
      CHECK(contains(begun.to_string(),
                     "node \"read\" of function \"contents\""));
      continue;
    }
    must(begun);
    for (const char* text : {"this is a", "this is b"})
      CHECK(must(session->run({}, {"next"}, {}, actors::within_a_minute()))[0]
                .scalar_value<std::string>() == text);
  }
}

TEST_CASE("an iterator keeps its functions when its init is released") {
  const PipelineGraph g = twice_graph();
  const Workers workers = some_workers(1);
  actors::SessionOptions options;
  options.max_signatures = 1;
  {
    const auto session = session_on(workers, g.graph, options);
    initialise(*session);
    for (int64_t i = 0; i < 3; ++i) CHECK(must(next_number(*session)) == 2 * i);
  }
  // The state of workers is that of all sessions of their cluster.
  const auto session = session_on(workers, g.graph, options);
  CHECK(must(next_number(*session)) == 6);
  initialise(*session);
  CHECK(must(next_number(*session)) == 0);
}

TEST_CASE("an error in a function of a worker's dataset names its node") {
  PipelineGraph g;
  g.define(graph::function(
      "divide", {"x: int64"}, {"y: int64"},
      {body_node("quotient", "FloorDiv", {"x", "x"}, {{"T", actors::kLong}})},
      {{"y", "quotient:z:0"}}));
  g.range("numbers", 3);
  g.add({body_node("mapped", "MapDataset", {"numbers"}, calling("divide"))});
  g.iterate("mapped");
  const Workers workers = some_workers(1);
  const auto session = session_on(workers, g.graph, {});
  initialise(*session);
  const auto got = next_number(*session).status();
  CHECK(got.code() == Code::kInvalidArgument);
  for (const char* part :
       {"MapDataset \"mapped\"", "function \"divide\"", "quotient"})
    CHECK_MESSAGE(contains(got.to_string(), part), got.to_string());
  CHECK(must(next_number(*session)) == 1);
}

TEST_CASE("waits in functions of a worker's dataset end") {
  const actors::PipelineGraph g = actors::waiting_graph();
  Workers workers = some_workers(1);
  auto session = session_on(workers, g.graph, {});
  initialise(*session);
  actors::RunOptions soon;
  soon.timeout = std::chrono::milliseconds(30);
  CHECK(next_number(*session, soon).status().code() == Code::kDeadlineExceeded);
  must(session->run({}, {}, {"put"}, actors::within_a_minute()));
  CHECK(must(next_number(*session)) == 10);

  std::promise<Status> promise;
  auto answer = promise.get_future();
  session->run_async({}, {"next"}, {}, {},
                     [&](const auto& got, const actors::RunStats&) {
                       promise.set_value(got.status());
                     });
  // If the run begins after what ends its wait, the next end is for it.
  const auto until_answered = [&](const auto& end) {
    do {
      end();
    } while (answer.wait_for(std::chrono::milliseconds(50)) !=
             std::future_status::ready);
    return answer.get();
  };
  std::string says;
  Status got;
  SUBCASE("by the end of the session") {
    got = until_answered([&] { session.reset(); });
    says = "the session was closed";
  }
  SUBCASE("by a new initialisation") {
    got = until_answered([&] { initialise(*session); });
    says = "initialised again";
  }
  SUBCASE("by a reset") {
    got = until_answered([&] { must(session->reset({""})); });
    says = "container was reset";
  }
  SUBCASE("by the end of the worker") {
    got = until_answered([&] { workers.workers.clear(); });
    says = "/job:worker/task:0 is lost";
  }
  CHECK(!got.ok());
  CHECK_MESSAGE(contains(got.to_string(), says), got.to_string());
}

TEST_CASE("functions on workers run whatever way the session hands over") {
  for (const actors::HandOff hand_off :
       {actors::HandOff::kMailbox, actors::HandOff::kRandom}) {
    const Workers workers = some_workers(1);
    actors::SessionOptions options;
    options.hand_off = hand_off;
    const auto session = session_on(workers, twice_graph().graph, options);
    initialise(*session);
    for (int64_t i = 0; i < 3; ++i) CHECK(must(next_number(*session)) == 2 * i);
  }
}

TEST_CASE("an iterator on a worker goes to a place that another run names") {
  PipelineGraph g = twice_graph();
  g.add({body_node("place", "SerializeIterator", {"it"}),
         body_node("go", "DeserializeIterator", {"it", "place"})});
  const Workers workers = some_workers(1);
  const auto session = session_on(workers, g.graph, {});
  initialise(*session);
  CHECK(must(next_number(*session)) == 0);
  must(session->run({}, {}, {"go"}, actors::within_a_minute()));
  CHECK(must(next_number(*session)) == 2);
}

TEST_CASE("random functions draw other numbers on each worker") {
  const PipelineGraph g = drawing_graph();
  for (const bool has_seed : {true, false}) {
    // By run, and by worker.
    std::vector<std::vector<Tensor>> drawn;
    for (int i = 0; i < 2; ++i) {
      const Workers workers = some_workers(2);
      actors::SessionOptions options;
      if (has_seed) options.seed = 7;
      const auto session = session_on(workers, g.graph, options);
      must(session->run({}, {}, {"init0", "init1"}, actors::within_a_minute()));
      for (int k = 0; k < 2; ++k)
        drawn.push_back(must(session->run({}, {"next0", "next1"}, {},
                                          actors::within_a_minute())));
    }
    CHECK(!identical(drawn[0][0], drawn[0][1]));
    CHECK(!identical(drawn[0][0], drawn[1][0]));
    for (size_t k = 0; k < 2; ++k)
      for (size_t task = 0; task < 2; ++task)
        CHECK(identical(drawn[k][task], drawn[2 + k][task]) == has_seed);
  }
}

}  // namespace tagflow::net
