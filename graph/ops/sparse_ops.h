// Private to graph/ops/sparse*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_sparse_batch_ops(OpRegistry& registry);

}  // namespace tagflow::graph
