// SavePlan: which values of a loop its gradient keeps.
#pragma once

#include "autodiff/analysis.h"
#include "graph/builder/control_flow.h"

namespace tagflow::autodiff {

// The plan that kSaveAttr and kSaveEveryAttr of the graph give.
struct SavePlan {
  graph::Save::Kind kind = graph::Save::Kind::kAll;
  // For kEvery: a constant, or a tensor of the frame around the loop.
  int64_t k = 0;
  Endpoint k_outside = {};

  // Returns InvalidArgument, naming the LoopCond, if the attribute is
  // invalid.
  static Result<SavePlan> of(const Loop& loop);
  // The plan in the attribute's text alone; k is 0 for "every".
  static Result<SavePlan> read(std::string_view text);
};

// Sets the plan of the loop of that frame to `text`: "all", "every:K" or "log".
// A loop that was a While op may also be given by the op's name. Returns
// NotFound if there is no such loop, and InvalidArgument for any other text.
Status set_save(graph::Graph& graph, const std::string& frame,
                const std::string& text);

}  // namespace tagflow::autodiff
