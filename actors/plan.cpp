#include "actors/plan.h"

#include "actors/frame.h"
#include "actors/plan_builder.h"
#include "graph/frames.h"

namespace tagflow::actors {
namespace {

Status check_outside_loops(const graph::FrameMap& frames,
                           const graph::Endpoint& endpoint,
                           std::string_view what, std::string_view instead) {
  const graph::FrameId frame = frames.output_of(*endpoint.node);
  if (frame == graph::FrameId::kRoot) return {};
  return invalid_argument(
      "[session] cannot {} \"{}\": it is inside the loop of frame \"{}\" and "
      "has a value per iteration; {}",
      what, endpoint.to_string(), frames.frame(frame).name, instead);
}

}  // namespace

Result<std::unique_ptr<Plan>> compile_plan(
    const graph::Graph& graph, const std::vector<graph::Endpoint>& feeds,
    const std::vector<graph::Endpoint>& fetches,
    const std::vector<graph::Node*>& targets, const PlanOptions& options,
    const KernelLookup& kernels) {
  TAGFLOW_ASSIGN(const graph::FrameMap frames, graph::FrameMap::build(graph));
  for (const auto& feed : feeds)
    TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
        frames, feed, "feed", "feed what enters the loop instead"));
  for (const auto& fetch : fetches)
    TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
        frames, fetch, "fetch", "fetch an Exit of the loop instead"));
  PlanBuilder builder(graph, frames, options, kernels);
  TAGFLOW_RETURN_IF_ERROR(builder.add_feeds(feeds));
  TAGFLOW_RETURN_IF_ERROR(builder.add_fetches(fetches));
  for (graph::Node* target : targets)
    TAGFLOW_RETURN_IF_ERROR(builder.add_target(target));
  TAGFLOW_ASSIGN(auto plan, builder.finish());
  plan->warnings = frames.warnings();
  return plan;
}

}  // namespace tagflow::actors
