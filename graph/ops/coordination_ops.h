// Private to graph/ops/coordination*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_coordination_staging_ops(OpRegistry& registry);

}  // namespace tagflow::graph
