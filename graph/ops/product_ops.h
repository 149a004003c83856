// Private to the ops of products, and to convolutions, which may have further
// ops on their results as products have.
#pragma once

#include <string>

namespace tagflow::graph {

class OpRegistry;

void register_product_einsum_ops(OpRegistry& registry);
void register_product_fused_ops(OpRegistry& registry);

// Adds "_Fused" and the op's name: the op with further ops on its result. If
// `has_bias` is set, the first of the `others` is a bias for each of its
// channels, the last dimension. Then follows `program`, which may be empty,
// with its `outputs`, as in _FusedElementwise: the result has number 0, and the
// other `others` are numbered from 1. If there are several `segments`, the
// result has as many numbers: each is `width` of its channels. If `more` is not
// empty, the op's first input is a ConcatV2 of that one and these, along the
// last dimension. `names` are the nodes' names, for messages: the ConcatV2 and
// the bias, if they exist, before and after the op, then those of the program.
// REQUIRES: the op has been added.
void add_layer(OpRegistry& registry, const std::string& op);

}  // namespace tagflow::graph
