// Datasets on the workers of a cluster, whose functions run there.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
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
  PipelineGraph g;
  g.define(graph::function(
      "twice", {"x: int64"}, {"y: int64"},
      {body_node("sum", "AddV2", {"x", "x"}, {{"T", actors::kLong}})},
      {{"y", "sum:z:0"}}));
  g.range("numbers", 100);
  g.add({body_node("mapped", "MapDataset", {"numbers"}, calling("twice"))});
  g.iterate("mapped");
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
  SUBCASE("by the end of the session") {}
  SUBCASE("by a new initialisation") { initialise(*session); }
  SUBCASE("by a reset") { must(session->reset({})); }
  SUBCASE("by the end of the worker") {
    CHECK(next_number(*session, soon).status().code() ==
          Code::kDeadlineExceeded);
    workers.workers.clear();
    CHECK(!next_number(*session).ok());
  }
}

}  // namespace tagflow::net
