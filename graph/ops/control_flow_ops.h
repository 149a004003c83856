// Private to graph/ops/control_flow*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_control_flow_functions_ops(OpRegistry& registry);

}  // namespace tagflow::graph
