// checkpoint(): what is computed again for its gradient, in place of being
// kept.
//
//   Output y = x;
//   for (const Layer& layer : layers)
//     y = checkpoint(s, [&](const Scope& in, const Outputs& a) -> Outputs {
//       return layer(in, a[0]);
//     }, {y})[0];
//   gradients(s, {loss(s, y)}, weights);
#pragma once

#include <functional>
#include <string_view>

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// Which part of the graph a node belongs to: the names of the checkpoints that
// it is in, from the outermost on, with a ';' in between.
inline constexpr std::string_view kCheckpointAttr = "_checkpoint";

using CheckpointFn = std::function<graph::Outputs(const graph::Scope&,
                                                  const graph::Outputs& args)>;

// What f makes of the args, built in place. Gradients keep of it what goes in
// and what comes out, and compute the rest again where they need it, after the
// gradients of its outputs are there. What is stateful in it does not run
// again: random numbers, and what was read or dequeued, are kept as well. f may
// use any tensor that the scope can. Checkpoints nest; their outputs, and
// gradients of first order, are those without them, to the bit where no tensor
// has gradients from inside of one and from elsewhere, which add up in another
// order.
//
// f is kept like everything else where an x is inside of it and is used there,
// or where not all of its outputs are live in the same cases.
graph::Outputs checkpoint(const graph::Scope& scope, const CheckpointFn& f,
                          const graph::Inputs& args);

// The names of the checkpoints that a node of these attributes is in; empty
// where it is in none. Valid while the attributes are.
std::string_view checkpoints_of(const AttrMap& attrs);
// The part of the checkpoint's outermost name, and what is left of the text.
std::string_view outermost_checkpoint(std::string_view text);
std::string_view inner_checkpoints(std::string_view text);

}  // namespace tagflow::autodiff
