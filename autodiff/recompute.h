// recompute(): computes values again for their gradient instead of keeping
// them.
//
//   Output y = x;
//   for (const Layer& layer : layers)
//     y = recompute(s, [&](const Scope& in, const Outputs& a) -> Outputs {
//       return layer(in, a[0]);
//     }, {y})[0];
//   gradients(s, {loss(s, y)}, weights);
#pragma once

#include <functional>
#include <string_view>

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// The names of the recomputed blocks that a node is in, from the outermost on,
// separated by ';'.
inline constexpr std::string_view kRecomputeAttr = "_recompute";

using RecomputeFn = std::function<graph::Outputs(const graph::Scope&,
                                                 const graph::Outputs& args)>;

// The results of f(args), built in place, as a recomputed block. Gradients keep
// only its inputs and outputs. They compute the other values again where they
// need them, once the gradients of its outputs are there. Stateful ops do not
// run again: random numbers, and values that were read or dequeued, are kept as
// well. f may use any tensor that the scope can use. Blocks nest. They do not
// change outputs. First-order gradients are bit-identical, except where a
// tensor has gradients both from inside a block and from elsewhere: these are
// summed in another order.
//
// Nothing is recomputed if an x is made and used inside f, or if not all
// outputs of f are live in the same cases.
graph::Outputs recompute(const graph::Scope& scope, const RecomputeFn& f,
                         const graph::Inputs& args);

// The names of the blocks that a node with these attributes is in; empty if it
// is in none. The view is valid while the attributes are.
std::string_view blocks_of(const AttrMap& attrs);
// The outermost name in the text, and the rest of the text.
std::string_view outermost_block(std::string_view text);
std::string_view inner_blocks(std::string_view text);

}  // namespace tagflow::autodiff
