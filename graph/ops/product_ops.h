// Private to graph/ops/product*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_product_einsum_ops(OpRegistry& registry);
// Also those of convolutions, which must be there before.
void register_product_fused_ops(OpRegistry& registry);

}  // namespace tagflow::graph
