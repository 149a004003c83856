// Which loops have to be on one device as a whole.
//
// Note [Loops that can be cut]
// A device that has a part of a loop learns, once per iteration, from the
// loop's predicate whether there is another one, and then waits for what the
// iteration's other parts send. So each part must get its tokens once in every
// iteration, and the predicate must be all that ends the loop. That is so of a
// loop where
//   1. there is a LoopCond;
//   2. an Enter that is no constant, and a NextIteration, lead to nothing but
//      loop variables: Merges of at least one of either, and of nothing else;
//   3. no loop variable is dead in the first iteration, unless the LoopCond is;
//   4. every NextIteration is live just where the LoopCond is live, and true.
// For if the LoopCond is live in the first iteration, so are all variables, by
// 3. If it is true, then by 4 each of them gets a live token in the next one;
// and so on until it is false or dead, and then none gets another token. In
// between, every node has all its inputs in every iteration, live or dead.
//
// What is live where is found in the graph (Note [Liveness]), without running
// it. Loops as they are built are like that, and so is one that nothing goes
// around in. Any other runs as well, but on one device, with all loops inside
// it. What leads into a variable's Merge arrives in some iterations only, and
// is never cut either.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/placement/liveness.h"
#include "graph/program.h"

namespace tagflow::graph {

// A data input of a loop variable's Merge from a NextIteration, or from an
// Enter that is no constant.
bool is_variable_edge(const Node& node, size_t index);

// A NextIteration, or an Enter that is no constant. In a loop that goes around
// and can be cut, it leads to nothing but loop variables, and has a token in
// some iterations only.
bool leads_to_variable(const Node& node);

// By frame: why the loop cannot be cut, in words that go on after "the loop of
// frame "l" has to be on one device: "; empty where it can be. Takes time
// about proportional to the program. REQUIRES: the program is valid, its
// functions are lowered, and `frames` are its graph's.
std::vector<std::string> find_whole_loops(const Program& program,
                                          const FrameMap& frames);

// What a graph without functions does as it runs.
struct GraphFacts {
  // Of every node, all of which were visited.
  std::unique_ptr<Liveness> liveness;
  // By frame, as find_whole_loops() says it.
  std::vector<std::string> whole_loops;
};
// REQUIRES: as above, but that back edges may still be open; `frames` outlives
// the result.
GraphFacts find_facts(const Graph& graph, const FrameMap& frames);

}  // namespace tagflow::graph
