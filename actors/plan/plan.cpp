#include "actors/plan/plan.h"

#include <atomic>

#include "actors/plan/plan_builder.h"
#include "graph/analysis/frames.h"

namespace tagflow::actors {
namespace {

std::atomic<uint64_t> last_frame_plan{0};

// Adds the frames of one graph to the plan.
Status add_frames(const graph::Program& program, const PlanOptions& options,
                  const KernelLookup& kernels, Plan& plan) {
  TAGFLOW_ASSIGN(const graph::FrameMap frames,
                 graph::FrameMap::build(program.graph));
  PlanBuilder builder(program.graph, frames, options, kernels, plan);
  TAGFLOW_RETURN_IF_ERROR(builder.add_feeds(program.feeds));
  if (program.name.empty()) {
    TAGFLOW_RETURN_IF_ERROR(builder.add_fetches(program.fetches));
  } else {
    TAGFLOW_RETURN_IF_ERROR(builder.add_results(program.name, program.fetches));
  }
  for (graph::Node* target : program.targets)
    TAGFLOW_RETURN_IF_ERROR(builder.add_target(target));
  builder.add_order_edges(program.order_edges);
  TAGFLOW_RETURN_IF_ERROR(builder.finish());
  const auto& warnings = frames.warnings();
  plan.warnings.insert(plan.warnings.end(), warnings.begin(), warnings.end());
  return {};
}

}  // namespace

FramePlan::FramePlan() : id(++last_frame_plan) {}

Result<std::unique_ptr<Plan>> compile_plan(const graph::Program& program,
                                           const PlanOptions& options,
                                           const KernelLookup& kernels) {
  auto plan = std::make_unique<Plan>();
  for (uint32_t i = 0; i < program.feeds.size(); ++i)
    if (program.feeds[i].node != nullptr) plan->feeds.push_back(i);
  TAGFLOW_RETURN_IF_ERROR(add_frames(program, options, kernels, *plan));
  std::vector<int> first_frames;  // of the bodies
  for (const auto& body : program.bodies) {
    first_frames.push_back(int(plan->frames.size()));
    TAGFLOW_RETURN_IF_ERROR(add_frames(*body, options, kernels, *plan));
  }
  for (FramePlan& frame : plan->frames)
    for (size_t i = 0; i < frame.calls.size(); ++i)
      if (frame.calls[i])
        frame.children[i] = first_frames[size_t(frame.children[i])];
  return plan;
}

}  // namespace tagflow::actors
