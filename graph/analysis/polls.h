// Reads of variables: which are such, what orders them, and by which a loop
// goes on.
#pragma once

#include <vector>

#include "graph/analysis/frames.h"
#include "graph/graph.h"

namespace tagflow::graph {

// Whether it reads the value of a variable, and does nothing else.
bool reads_variable(const Node& node);
// The same, or of several variables at once (Note [What is read ahead]).
bool reads_variables(const Node& node);

// Whether it may see what other runs do, in a way that a read of a variable
// after it must see, too: any stateful op that is neither such a read, nor
// makes a handle, nor is about what one run has for itself; and any call.
bool may_see_others(const Node& node);

// Whether it is about a variable, by what its first input is called.
bool is_about_variable(const Node& node);

// Whether something that waits for other runs, or for this one, may wait for
// it: it sees others, and more than a variable.
bool may_end_wait(const Node& node);

// By node id: reads in loops on whose values some LoopCond depends, by data or
// by what a Switch takes. Such a loop may wait for another run to change the
// variable. To wait for a read, as the end of an iteration does where effects
// have an order, is not to depend on its value. REQUIRES: `frames` are the
// graph's.
std::vector<bool> find_polls(const Graph& graph, const FrameMap& frames);

}  // namespace tagflow::graph
