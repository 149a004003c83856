#include "actors/compile.h"

#include "actors/evaluator.h"
#include "devices/kernel_registry.h"
#include "graph/function.h"
#include "graph/functions/lower.h"
#include "graph/passes/passes.h"
#include "graph/program.h"
#include "graph/validate.h"

namespace tagflow::actors {
namespace {

// What a plan points into.
struct Compiled {
  graph::Program program;
  std::vector<std::unique_ptr<devices::Kernel>> kernels;
};

Status check_outside_loops(const graph::FrameMap& frames,
                           const std::vector<graph::Endpoint>& endpoints,
                           std::string_view what, std::string_view instead) {
  for (const graph::Endpoint& endpoint : endpoints) {
    const graph::FrameId frame = frames.output_of(*endpoint.node);
    if (frame != graph::FrameId::kRoot)
      return invalid_argument(
          "[session] cannot {} \"{}\": it is inside the loop of frame \"{}\" "
          "and has a value per iteration; {}",
          what, endpoint.to_string(), frames.frame(frame).name, instead);
  }
  return {};
}

// What functions are expanded to is seen for the first time here, and may not
// be valid.
Status lower(graph::Program& program) {
  const size_t end_id = program.graph.end_id();
  TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(program));
  if (program.graph.end_id() == end_id) return {};
  // Nothing asks for a function any more.
  program.graph.library() = graph::FunctionLibrary();
  TAGFLOW_RETURN_IF_ERROR(graph::validate(program.graph));
  for (const auto& body : program.bodies) {
    body->graph.library() = graph::FunctionLibrary();
    Status status = graph::validate(body->graph);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[function] \"{}\": ", body->name));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Plan>> compile(const graph::Graph& graph,
                                      const graph::FrameMap& frames,
                                      const Request& request,
                                      const graph::PassSet& passes,
                                      int window) {
  TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
      frames, request.feeds, "feed", "feed what enters the loop instead"));
  TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
      frames, request.fetches, "fetch", "fetch an Exit of the loop instead"));
  const auto compiled = std::make_shared<Compiled>();
  graph::Program& program = compiled->program;
  TAGFLOW_ASSIGN(program, graph::extract(graph, request.feeds, request.fetches,
                                         request.targets));
  TAGFLOW_RETURN_IF_ERROR(lower(program));
  const KernelEvaluator evaluator;
  TAGFLOW_RETURN_IF_ERROR(graph::optimize(program, passes, &evaluator));
  const PlanOptions options{passes.has(graph::Pass::kEdges), window};
  const auto make_kernel =
      [&](const graph::Node& node) -> Result<const devices::Kernel*> {
    TAGFLOW_ASSIGN(auto kernel,
                   devices::KernelRegistry::global().make(node, "CPU"));
    return compiled->kernels.emplace_back(std::move(kernel)).get();
  };
  TAGFLOW_ASSIGN(auto plan, compile_plan(program, options, make_kernel));
  plan->owned = compiled;
  return plan;
}

}  // namespace tagflow::actors
