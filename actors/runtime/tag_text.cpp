#include "actors/runtime/tag_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "actors/plan/tag.h"
#include "actors/runtime/iteration_actor.h"
#include "actors/runtime/iteration_view.h"

namespace tagflow::actors {
namespace {

std::string level(const FramePlan& plan, int64_t iteration) {
  return fmt::format("{}/{}", frame_label(plan.name), iteration);
}

// The levels of the iteration and all enclosing ones, the innermost first,
// without the root.
std::vector<std::string> levels_inwards_out(const FrameInstance& frame,
                                            int64_t iteration) {
  std::vector<std::string> levels;
  for (const FrameInstance* at = &frame; !at->plan->is_root();) {
    levels.push_back(level(*at->plan, iteration));
    if (at->parent == nullptr) break;
    iteration = at->parent_iteration;
    at = &static_cast<const IterationActor*>(at->parent)->frame();
  }
  return levels;
}

std::string join_outwards_in(std::vector<std::string> levels) {
  std::ranges::reverse(levels);
  return join_levels(levels);
}

}  // namespace

std::string tag_text(const FrameInstance& frame, int64_t iteration) {
  if (frame.plan->is_root()) return fmt::format("{}/{}", kRootName, iteration);
  return join_outwards_in(levels_inwards_out(frame, iteration));
}

std::string tag_text(const Location& location) {
  return tag_text(*location.instance, location.tag.iteration);
}

std::string frame_text(const FrameInstance& frame) {
  if (frame.plan->is_root()) return std::string(kRootName);
  std::vector<std::string> levels = levels_inwards_out(frame, 0);
  levels.front() = frame_label(frame.plan->name);
  return join_outwards_in(std::move(levels));
}

std::string frame_text(const FrameInstance& around, int64_t iteration,
                       const FramePlan& child) {
  std::vector<std::string> levels = levels_inwards_out(around, iteration);
  levels.insert(levels.begin(), frame_label(child.name));
  return join_outwards_in(std::move(levels));
}

}  // namespace tagflow::actors
