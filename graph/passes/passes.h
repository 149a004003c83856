// The passes: rewrites of a program that preserve its results.
//
// Note [What a pass keeps]
//   1. Values are unchanged to the last bit, except as described in Notes [What
//      is absorbed], [What is a layer], [What is summed] and [What is packed].
//      A loop reads the same values of variables, except as described in Note
//      [What is read ahead]. A fetch is dead exactly if it was dead before. If
//      a node is removed, its inputs and control inputs, which it waited for
//      and could die with, become inputs or control inputs of its replacement.
//      A control edge cannot express "this output of the Switch", so a node
//      that would need such an edge stays.
//   2. Errors: a node whose result is needed fails as before, with the same
//      code. An error may be lost if it only affects a dead branch.
//   3. Effects: a stateful op still runs exactly once, and keeps its neighbours
//      by control edges.
//   4. Ids: a remaining node keeps its id, since tables refer to it.
// A token that never comes (for a Recv without a Send) counts as dead or live,
// as needed for the program to end.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "graph/passes/evaluator.h"
#include "graph/passes/pass_set.h"
#include "graph/program.h"

namespace tagflow::graph {

// Rewrites the program and returns whether it changed. An error is a bug, or
// means that the result has too many outputs for a graph. REQUIRES: the program
// and its bodies are valid.
using PassFunction = Result<bool> (*)(Program& program,
                                      const Evaluator* evaluator);

struct PassItem {
  Pass pass = Pass::kFold;
  std::string_view name;  // for PassSet::parse()
  std::string_view summary;
  PassFunction run = nullptr;  // null: applied by the engine, not optimize()
};

// All passes, in the order of Pass.
std::span<const PassItem> passes();

// Applies the passes of the set that have a function. Without an evaluator only
// shapes and identities are folded. In builds with assertions the validator
// checks each result. REQUIRES: as for each pass.
Status optimize(Program& program, const PassSet& set,
                const Evaluator* evaluator);

// Replaces nodes whose inputs, or requested shapes, are known by constants.
Result<bool> fold_constants(Program& program, const Evaluator* evaluator);
// Removes identities, reshapes, casts and other nodes that change nothing, and
// control inputs from nodes that always have a token.
Result<bool> remove_identities(Program& program, const Evaluator* evaluator);
// Merges nodes that compute the same.
Result<bool> share_subexpressions(Program& program, const Evaluator* evaluator);
// Removes nodes that can never be live, and the control flow around them.
Result<bool> remove_dead_branches(Program& program, const Evaluator* evaluator);
// Moves constant scales and shifts into the weights of preceding products.
Result<bool> absorb_scales(Program& program, const Evaluator* evaluator);
// Moves computations of loop constants out of loops.
Result<bool> hoist_invariants(Program& program, const Evaluator* evaluator);
// Merges element-wise ops that only feed each other into one node.
Result<bool> fuse_elementwise(Program& program, const Evaluator* evaluator);
// Merges a product by constants with the element-wise ops on its result. Not
// run by optimize(): Note [What is a layer]. Includes bodies.
Result<bool> fuse_layers(Program& program, const Evaluator* evaluator);
// Merges element-wise ops of one shape that feed each other, or that read
// columns of one tensor, even if others read them too. Not run by optimize():
// Note [What is a group]. Excludes bodies. `may_wait` says which nodes may
// answer at any time.
using MayWait = std::function<bool(const Node&)>;
Result<bool> group_elementwise(Program& program, const MayWait& may_wait);
// Reads variables that a loop only reads once, before the loop. Not run by
// optimize(): Note [What is read ahead]. Excludes bodies.
Result<bool> read_ahead(Program& program, const MayWait& may_wait);
// Reads a constant directly if a loop pushes it onto a list in each iteration.
// Not run by optimize(): Note [What is saved alike]. Excludes bodies.
Result<bool> read_saved_constants(Program& program, const Evaluator* evaluator);
// Packs weights for the products of a loop, and replaces a sum of two products
// by one. Not run by optimize(): Note [What is packed]. Includes bodies.
Result<bool> pack_weights(Program& program, const Evaluator* evaluator);
// Sums products of a loop in a variant that delays them. Not run by optimize():
// Note [What is summed]. Includes bodies.
Result<bool> sum_products(Program& program, const Evaluator* evaluator);

}  // namespace tagflow::graph
