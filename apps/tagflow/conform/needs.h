// Finds the nodes of a graph that a case needs, and the ops that are missing.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/tagflow/conform/case.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {

// The nodes that any run of the case may need: those that its fetches, targets,
// feeds and gradients name and all that lead to them, in the file's order.
// Gradients are those of a session with initialised variables, though the case
// does not say so: their initial_assignments() are included. Reads only the
// definitions, so that an unknown op elsewhere does not matter. Ignores names
// that no node has; the run reports them.
std::vector<graph::NodeDef> needed_nodes(const graph::GraphFile& file,
                                         const Case& the_case);

// The nodes that give a variable its initial value, as TensorFlow names them:
// "v/Assign", an Assign or AssignVariableOp to "v".
std::vector<std::string> initial_assignments(
    const std::vector<graph::NodeDef>& nodes);

// The ops without a definition or CPU kernel, in the nodes and in all functions
// that these use. Sorted.
std::set<std::string> missing_ops(const std::vector<graph::NodeDef>& nodes,
                                  const graph::FunctionLibrary& library);

// Ops that the engine itself performs: they have a definition, but no kernel.
bool is_performed_by_engine(std::string_view op);
// Whether any CPU kernel of the op exists. Registers the built-in ones.
bool has_cpu_kernel(std::string_view op);

}  // namespace tagflow::apps
