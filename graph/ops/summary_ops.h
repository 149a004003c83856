// Private to graph/ops/summary*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_summary_writer_ops(OpRegistry& registry);

}  // namespace tagflow::graph
