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

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/passes/evaluator.h"
#include "graph/passes/pass_set.h"
#include "graph/program.h"

namespace tagflow::graph {

class Budget;  // graph/budget.h

struct PassItem {
  Pass pass = Pass::kFold;
  std::string_view name;  // for PassSet::parse()
  std::string_view summary;
};

// All passes, in the order of Pass.
std::span<const PassItem> passes();

// When a pass runs, in this order. The program is placed after kWhole, and then
// cut, by distribute() of actors/plan/distribute.h.
enum class Stage : uint8_t {
  kForm,    // a session compiles another form of a signature
  kRounds,  // on the whole program, in rounds while branches are removed
  kWhole,   // on the whole program, once
  kCut,     // on each partition of a program that was cut, for the added nodes
  kCpu,     // on each partition of a CPU, since new nodes have kernels there
  kLast,    // likewise, after readers have got their order edges
  kPlan,    // the engine plans or runs each partition differently
};

// What passes know besides the program.
struct PassContext {
  // Null: only shapes and identities are folded.
  const Evaluator* evaluator = nullptr;
  // Which nodes may answer at any time.
  bool (*may_wait)(const Node&) = [](const Node&) { return false; };
  // Asked before each pass, and by long ones; may be null.
  Budget* budget = nullptr;
};

// Rewrites the program's graph, not its bodies, and returns whether it changed.
// An error is a bug, is one of the budget, or means that the result has too
// many outputs for a graph. REQUIRES: the program is valid.
using PassFunction = Result<bool> (*)(Program& program,
                                      const PassContext& context);

// Whether a pass also runs on the bodies of functions.
enum class Bodies : uint8_t { kIncluded, kExcluded };

struct PassStep {
  Stage stage = Stage::kWhole;
  Pass pass = Pass::kFold;
  PassFunction run = nullptr;  // null in the first and the last stage
  Bodies bodies = Bodies::kIncluded;
};

// What runs when: at least one step of each pass, in the order of the stages.
std::span<const PassStep> pass_steps();

// Runs the passes of a stage that are in the set, first on the program's
// bodies. In builds with assertions the validator checks the result of each.
// REQUIRES: the program and its bodies are valid.
Status run_stage(Stage stage, Program& program, const PassSet& set,
                 const PassContext& context);
// The stages of a whole program: kRounds and kWhole.
Status optimize(Program& program, const PassSet& set,
                const PassContext& context);

// Replaces nodes whose inputs, or requested shapes, are known by constants.
Result<bool> fold_constants(Program& program, const PassContext& context);
// Removes identities, reshapes, casts and other nodes that change nothing, and
// control inputs from nodes that always have a token.
Result<bool> remove_identities(Program& program, const PassContext& context);
// Merges nodes that compute the same.
Result<bool> share_subexpressions(Program& program, const PassContext& context);
// Removes nodes that can never be live, and the control flow around them.
Result<bool> remove_dead_branches(Program& program, const PassContext& context);
// Moves constant scales and shifts into the weights of preceding products.
Result<bool> absorb_scales(Program& program, const PassContext& context);
// Moves computations of loop constants out of loops.
Result<bool> hoist_invariants(Program& program, const PassContext& context);
// Merges element-wise ops that only feed each other into one node.
Result<bool> fuse_elementwise(Program& program, const PassContext& context);
// Sums products of a loop in a variant that delays them: Note [What is summed].
Result<bool> sum_products(Program& program, const PassContext& context);
// Merges element-wise ops of one shape that feed each other, or that read
// columns of one tensor, even if others read them too: Note [What is a group].
Result<bool> group_elementwise(Program& program, const PassContext& context);
// Reads variables that a loop only reads once, before the loop: Note [What is
// read ahead].
Result<bool> read_ahead(Program& program, const PassContext& context);
// Reads a constant directly if a loop pushes it onto a list in each iteration:
// Note [What is saved alike].
Result<bool> read_saved_constants(Program& program, const PassContext& context);
// Packs weights for the products of a loop, and replaces a sum of two products
// by one: Note [What is packed].
Result<bool> pack_weights(Program& program, const PassContext& context);
// Merges a product by constants with the element-wise ops on its result: Note
// [What is a layer].
Result<bool> fuse_layers(Program& program, const PassContext& context);

}  // namespace tagflow::graph
