// Private to graph/ops/parsing*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_parsing_example_ops(OpRegistry& registry);
void register_parsing_sequence_ops(OpRegistry& registry);
void register_parsing_proto_ops(OpRegistry& registry);

}  // namespace tagflow::graph
