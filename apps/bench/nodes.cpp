// Workloads: the cost of a node, a step and a plan.
//
//   chain       x, op(x), op(op(x)), ...
//   dead        the same on a branch that is not taken
//   wide        many independent op(x)
//   empty_step  one NoOp
//   load        a GraphDef of many nodes: read, validated, planned
// The first three run with --passes none unless told otherwise, so that every
// node fires.
#include <algorithm>
#include <chrono>

#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "graph/analysis/validate.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

Result<Measurement> measure_nodes(std::string name, BenchOptions options,
                                  int nodes, const Result<BenchGraph>& graph) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  if (options.engine.passes.empty()) options.engine.passes = "none";
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(*graph, session));
  constexpr int kInner = 10;
  TAGFLOW_ASSIGN(const double seconds,
                 run.seconds({}, options.repeats, kInner));
  return Measurement{std::move(name),
                     seconds * 1e9 / nodes,
                     "ns",
                     {{"nodes", nodes},
                      {"passes", options.engine.passes},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

int nodes_or(const BenchOptions& options, int fallback) {
  return options.nodes > 0 ? options.nodes : fallback;
}

}  // namespace

Result<Measurement> measure_chain(const BenchOptions& options) {
  const int nodes = nodes_or(options, 10'000);
  TAGFLOW_ASSIGN(
      Measurement result,
      measure_nodes("chain", options, nodes, make_chain(options.op, nodes)));
  result.config["op"] = options.op;
  return result;
}

Result<Measurement> measure_dead(const BenchOptions& options) {
  const int nodes = nodes_or(options, 10'000);
  TAGFLOW_ASSIGN(Measurement result,
                 measure_nodes("dead", options, nodes,
                               make_dead_chain(options.op, nodes)));
  result.config["op"] = options.op;
  return result;
}

Result<Measurement> measure_wide(const BenchOptions& options) {
  const int nodes = nodes_or(options, 10'000);
  TAGFLOW_ASSIGN(
      Measurement result,
      measure_nodes("wide", options, nodes, make_fan_out(options.op, nodes)));
  result.config["op"] = options.op;
  return result;
}

Result<Measurement> measure_empty_step(const BenchOptions& options) {
  TAGFLOW_ASSIGN(const BenchGraph graph, make_empty());
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  constexpr int kInner = 2000;
  TAGFLOW_ASSIGN(const double seconds,
                 run.seconds({}, options.repeats, kInner));
  return Measurement{"empty_step",
                     seconds * 1e6,
                     "us",
                     {{"workers", options.engine.workers},
                      {"repeats", options.repeats},
                      {"inner", kInner}}};
}

Result<Measurement> measure_load(const BenchOptions& options) {
  const int nodes = nodes_or(options, 100'000);
  TAGFLOW_ASSIGN(const BenchGraph graph, make_large(nodes));
  TAGFLOW_ASSIGN(const std::string bytes, graph::write_graphdef(graph.graph));
  TAGFLOW_ASSIGN(actors::SessionOptions session_options,
                 to_session_options(options.engine));
  std::vector<double> times;
  const int repeats = std::min(options.repeats, 5);
  for (int i = -1; i < repeats; ++i) {
    TAGFLOW_ASSIGN(auto session, actors::Session::create(session_options));
    const Clock::time_point start = Clock::now();
    TAGFLOW_ASSIGN(const graph::Graph read, graph::read_graphdef(bytes));
    TAGFLOW_RETURN_IF_ERROR(session->extend(read));
    TAGFLOW_RETURN_IF_ERROR(
        session->make_callable(graph.feeds, graph.fetches, graph.targets)
            .status());
    const std::chrono::duration<double> time = Clock::now() - start;
    if (i >= 0) times.push_back(time.count());
  }
  return Measurement{"load",
                     median(std::move(times)),
                     "s",
                     {{"nodes", graph.graph.size()},
                      {"bytes", bytes.size()},
                      {"repeats", repeats}}};
}

}  // namespace tagflow::apps
