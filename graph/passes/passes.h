// The passes: rewrites of a program that keep what it means.
//
// Note [What a pass keeps]
//   1. Values, to the bit but for what Notes [What is absorbed], [What is a
//      layer], [What is summed] and [What is packed] say; what variables a loop
//      reads, but for Note [What is read ahead]; and deadness: a fetch is dead
//      exactly where it was.
//      A node that goes hands on what it waited for, and with that what it
//      would have died with: as inputs, or as control inputs of what stands
//      for it. A control edge cannot say "this output of the Switch", so what
//      would need one stays.
//   2. Errors: a node whose result is needed fails where it did, with the same
//      code. What fails only for a dead branch need not.
//   3. Effects: a stateful op that ran runs, once; its neighbours by control
//      edges stay so.
//   4. Ids: a node that stays has its id, by which tables know it.
// A token that never comes (a Recv nobody sends to) counts as dead or alive,
// whichever lets the program end.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "graph/passes/evaluator.h"
#include "graph/passes/pass_set.h"
#include "graph/program.h"

namespace tagflow::graph {

// Rewrites the program; says whether it did. An error is a bug, or says that
// the result has more outputs than a graph can have. REQUIRES: it is valid, and
// so are its bodies.
using PassFunction = Result<bool> (*)(Program& program,
                                      const Evaluator* evaluator);

struct PassItem {
  Pass pass = Pass::kFold;
  std::string_view name;  // as PassSet::parse() takes it
  std::string_view summary;
  PassFunction run = nullptr;  // null: not by optimize(); the engine does it
};

// All of them, as Pass counts them.
std::span<const PassItem> passes();

// Applies the passes of the set that have a function. Without an evaluator
// nothing is folded but shapes and identities. Where assertions are on, the
// validator looks at the result of each. REQUIRES: as for each of them.
Status optimize(Program& program, const PassSet& set,
                const Evaluator* evaluator);

// Nodes of constants, where all inputs, or the shapes asked for, are known.
Result<bool> fold_constants(Program& program, const Evaluator* evaluator);
// Identities, reshapes, casts and the like that change nothing, and waits for
// what is always there.
Result<bool> remove_identities(Program& program, const Evaluator* evaluator);
// One node for several that compute the same.
Result<bool> share_subexpressions(Program& program, const Evaluator* evaluator);
// What can never be live, and what chooses between it and the rest.
Result<bool> remove_dead_branches(Program& program, const Evaluator* evaluator);
// Scales and shifts by constants, into the weights of the products before them.
Result<bool> absorb_scales(Program& program, const Evaluator* evaluator);
// What every iteration of a loop computes anew from loop constants.
Result<bool> hoist_invariants(Program& program, const Evaluator* evaluator);
// One node for element-wise ops that only feed each other.
Result<bool> fuse_elementwise(Program& program, const Evaluator* evaluator);
// One node for a product by constants and what is done to its elements. Not
// among those of optimize(): Note [What is a layer]. Also of the bodies.
Result<bool> fuse_layers(Program& program, const Evaluator* evaluator);
// One node for element-wise ops of a shape that feed each other, or see columns
// of one tensor, whoever else reads them. Not among those of optimize(): Note
// [What is a group]. Not of the bodies.
// `may_wait` says which nodes answer when they like.
using MayWait = std::function<bool(const Node&)>;
Result<bool> group_elementwise(Program& program, const MayWait& may_wait);
// Loop constants for variables that a loop only reads. Not among those of
// optimize(): Note [What is read ahead]. Not of the bodies.
Result<bool> read_ahead(Program& program, const MayWait& may_wait);
// The constant itself, where a loop puts one on a list in each iteration. Not
// among those of optimize(): Note [What is saved alike]. Not of the bodies.
Result<bool> read_saved_constants(Program& program, const Evaluator* evaluator);
// Weights in the order that products like, for a loop, and one product for the
// sum of two. Not among those of optimize(): Note [What is packed]. Also of the
// bodies.
Result<bool> pack_weights(Program& program, const Evaluator* evaluator);
// A variant that puts products off, for a loop's sum of them. Not among those
// of optimize(): Note [What is summed]. Also of the bodies.
Result<bool> sum_products(Program& program, const Evaluator* evaluator);

}  // namespace tagflow::graph
