// Which loops have to be on one device as a whole.
//
// Note [Loops that can be cut]
// A device that has a part of a loop learns, once per iteration, from the
// loop's predicate whether there is another one, and then waits for what the
// iteration's other parts send. So each part must get its tokens once in every
// iteration, and the predicate must be what ends the loop. That is so of a
// loop where
//   1. there is a LoopCond;
//   2. every NextIteration is dead where the LoopCond is false: it waits for
//      output 1 of a Switch by that LoopCond;
//   3. an Enter that is no constant, and a NextIteration, lead to nothing but
//      loop variables: Merges that have both among their inputs.
// Loops as they are built are like that. Any other runs as well, but on one
// device, with all loops inside it.
// What leads into a variable's Merge arrives in some iterations only, and is
// never cut either.
#pragma once

#include <vector>

#include "graph/frames.h"
#include "graph/graph.h"

namespace tagflow::graph {

// A data input of a loop variable's Merge from a NextIteration, or from an
// Enter that is no constant.
bool is_variable_edge(const Node& node, size_t index);

// By frame: whether the frame, or one around it, cannot be cut. `order` is
// topological.
std::vector<bool> find_whole_loops(const Graph& graph, const FrameMap& frames,
                                   std::span<Node* const> order);

}  // namespace tagflow::graph
