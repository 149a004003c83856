// Reads of variables: their detection, their order, and loops that poll them.
#pragma once

#include <vector>

#include "graph/analysis/frames.h"
#include "graph/graph.h"

namespace tagflow::graph {

// Whether it only reads the value of a variable.
bool reads_variable(const Node& node);
// Whether it only reads the values of one or several variables (Note [What is
// read ahead]).
bool reads_variables(const Node& node);

// Whether it may observe effects of other runs that a later read of a variable
// must observe too: calls, and all stateful ops except reads of variables, ops
// that make handles, and ops on state that belongs to one run.
bool may_see_others(const Node& node);

// Whether it uses a variable, judging by the name of its first input.
bool is_about_variable(const Node& node);

// Whether a node that waits for another run, or for this one, may wait for it:
// it observes other runs, and more than a variable.
bool may_end_wait(const Node& node);

// By node id: reads in loops whose values some LoopCond depends on, by data or
// by the choice of a Switch. Such a loop may wait until another run changes the
// variable. A control dependence on a read, such as at the end of an iteration
// with ordered effects, does not count. REQUIRES: `frames` are the graph's.
std::vector<bool> find_polls(const Graph& graph, const FrameMap& frames);

}  // namespace tagflow::graph
