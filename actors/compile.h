// From what is asked of a graph to the plan that does it.
#pragma once

#include <memory>
#include <vector>

#include "actors/plan.h"
#include "graph/frames.h"
#include "graph/graph.h"
#include "graph/passes/pass_set.h"

namespace tagflow::actors {

// What a signature stands for in its graph.
struct Request {
  std::vector<graph::Endpoint> feeds;
  std::vector<graph::Endpoint> fetches;
  std::vector<graph::Node*> targets;
};

// The stages, in order: the part of the graph that is needed is copied, its
// functions are lowered, the passes rewrite it, kernels are made, and all is
// laid out flat. The plan owns the copy and the kernels. InvalidArgument for a
// feed or fetch inside a loop, and where a function expands to what is not
// valid; Unimplemented where there is no kernel.
// REQUIRES: `graph` is valid, and `frames` are its.
Result<std::unique_ptr<Plan>> compile(const graph::Graph& graph,
                                      const graph::FrameMap& frames,
                                      const Request& request,
                                      const graph::PassSet& passes,
                                      int window = 0);

}  // namespace tagflow::actors
