// SavePlan: what the gradient of a loop keeps of its values.
#pragma once

#include "autodiff/analysis.h"
#include "graph/builder/control_flow.h"

namespace tagflow::autodiff {

// As the graph says it by kSaveAttr and kSaveEveryAttr.
struct SavePlan {
  graph::Save::Kind kind = graph::Save::Kind::kAll;
  // Of kEvery: a constant, or a tensor of the frame around the loop.
  int64_t k = 0;
  Endpoint k_outside = {};

  // InvalidArgument where the attribute is none of a plan, naming the LoopCond.
  static Result<SavePlan> of(const Loop& loop);
  // Of the attribute's text alone; of "every", k is 0.
  static Result<SavePlan> read(std::string_view text);
};

// Has the graph say so of the loop of that frame, in place of what it says:
// "all", "every:K" or "log". NotFound where there is no such loop,
// InvalidArgument where the text is none of these.
Status set_save(graph::Graph& graph, const std::string& frame,
                const std::string& text);

}  // namespace tagflow::autodiff
