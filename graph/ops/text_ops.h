// Private to graph/ops/text*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_text_string_ops(OpRegistry& registry);

}  // namespace tagflow::graph
