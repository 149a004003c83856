// What of a graph a case needs, and what of it does not exist.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/conform/case.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {

// The nodes that any run of the case may touch: those that its fetches,
// targets, feeds and gradients name and all that leads to them, in the file's
// order. A gradient is one of a session that has initialised its variables,
// though the case does not say so: their initial_assignments() are needed, too.
// Found in the text alone, so that an unknown op elsewhere does not matter.
// Names that no node has are passed over; the run will say so.
std::vector<graph::NodeDef> needed_nodes(const graph::GraphFile& file,
                                         const Case& the_case);

// The nodes that give a variable its initial value, as TensorFlow names them:
// "v/Assign", an Assign or AssignVariableOp to "v".
std::vector<std::string> initial_assignments(
    const std::vector<graph::NodeDef>& nodes);

// The ops of the nodes, and of the functions that they use in turn, that have
// no definition or no CPU kernel. Sorted.
std::set<std::string> missing_ops(const std::vector<graph::NodeDef>& nodes,
                                  const graph::FunctionLibrary& library);

// Ops that the engine itself performs: they have a definition, but no kernel.
bool is_performed_by_engine(std::string_view op);
// Whether any CPU kernel of the op exists. Makes the built-in ones known.
bool has_cpu_kernel(std::string_view op);

}  // namespace tagflow::apps
