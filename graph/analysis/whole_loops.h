// Finds the loops that must be on one device as a whole.
//
// Note [Loops that can be cut]
// A device with a part of a loop learns once per iteration, from the loop's
// predicate, whether there is another iteration, and then waits for tokens from
// the other parts. So each part must get its tokens once in every iteration,
// and only the predicate may end the loop. This holds for a loop if
//   1. there is a LoopCond;
//   2. Enters that are not constant, and NextIterations, lead only to loop
//      variables, which are Merges of at least one Enter and one NextIteration
//      and of nothing else;
//   3. no loop variable is dead in the first iteration, unless the LoopCond is;
//   4. every NextIteration is live exactly if the LoopCond is live and true.
// Proof: if the LoopCond is live in the first iteration, so are all variables,
// by 3. If it is true, each variable gets a live token in the next iteration,
// by 4. This continues until it is false or dead; then no variable gets another
// token. Until then every node has all its inputs in every iteration, live or
// dead.
//
// Liveness is derived from the graph (Note [Liveness]), without running it.
// Builders make only such loops, and frames without a cycle also qualify. Any
// other loop runs on one device, with all loops inside it. Edges into a
// variable's Merge have tokens in some iterations only, and are never cut
// either.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/liveness.h"
#include "graph/program.h"

namespace tagflow::graph {

// Whether it is a data input of a loop variable's Merge from a NextIteration,
// or from an Enter that is not constant.
bool is_variable_edge(const Node& node, size_t index);

// A NextIteration, or an Enter that is not constant. In a loop with a cycle
// that can be cut, it leads only to loop variables, and has a token in some
// iterations only.
bool leads_to_variable(const Node& node);

// By frame: why the loop cannot be cut, as a continuation of "the loop of frame
// "l" has to be on one device: "; empty if it can be cut. Takes time about
// proportional to the program. REQUIRES: the program is valid, its functions
// are lowered, and `frames` are those of its graph.
std::vector<std::string> find_whole_loops(const Program& program,
                                          const FrameMap& frames);

// Facts about the execution of a graph without functions.
struct GraphFacts {
  // Of every node; all were visited.
  std::unique_ptr<Liveness> liveness;
  // By frame, as in find_whole_loops().
  std::vector<std::string> whole_loops;
};
// REQUIRES: as above, but back edges may still be open; `frames` outlives the
// result.
GraphFacts find_facts(const Graph& graph, const FrameMap& frames);

}  // namespace tagflow::graph
