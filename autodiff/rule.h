// Rules: how the gradient of an op is made. `autodiff/README.md` shows how to
// add one.
//
//   table.add("Mul", [](RuleContext& r) {
//     const Scope& s = r.scope();
//     if (r.wants(0))
//       r.set_broadcast(0, ops::mul(s, r.grad(), r.conj(r.input(1))));
//     if (r.wants(1))
//       r.set_broadcast(1, ops::mul(s, r.grad(), r.conj(r.input(0))));
//   });
#pragma once

#include <initializer_list>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/node_context.h"

namespace tagflow::autodiff {

// One node, the gradients of its outputs, and where to put those of its inputs.
//
// Each gradient that a rule sets must be computed from grad() or slices() of
// some port, so that it is live exactly where the node is. A rule leaves the
// gradient of an input unset if it is zero.
class RuleContext : public NodeContext {
 public:
  // `grads`: by output; invalid if y does not depend on it. Nodes are made
  // below `name`. The rule sees the node's inputs from `first_input` on.
  RuleContext(Region& region, const Node& node, std::string_view name,
              std::vector<Gradient> grads, std::vector<bool> wanted,
              size_t first_input = 0);

  // --- What comes in. At least one output has a gradient.
  bool has_grad(int port = 0) const;
  // Dense; zeros of the output's shape if it has none.
  Output grad(int port = 0);
  // Sparse or dense, as it came; invalid if there is none.
  const Gradient& slices(int port = 0) const { return grads_[size_t(port)]; }

  // --- What goes out.
  // Whether the gradient of that input is requested.
  bool wants(int input) const { return wanted_[size_t(input)]; }
  // Called at most once for each input. Has no effect if the gradient is not
  // wanted or is invalid.
  void set(int input, Output gradient);
  // Summed over the dimensions along which the op has broadcast the input.
  // REQUIRES: the op has two inputs, or more whose shapes are broadcast to that
  // of output 0.
  void set_broadcast(int input, Output gradient);
  // Sets a sparse gradient: rows of the input along its first dimension.
  void set_slices(int input, Output values, Output indices);
  void set(int input, const Gradient& gradient);

  // --- For autodiff/ only.
  std::vector<Gradient> take_results() && { return std::move(results_); }

 private:
  std::vector<Gradient> grads_;
  std::vector<bool> wanted_;
  std::vector<Gradient> results_;  // by input
};

class ForwardContext;  // autodiff/forward_rule.h

using Rule = void (*)(RuleContext&);
using ForwardRule = void (*)(ForwardContext&);

// An op's entry in the table.
struct RuleEntry {
  // Null: the derivative of its outputs by its inputs is zero or does not
  // exist, and paths from x to y do not lead through it.
  Rule rule = nullptr;
  // Why there is no rule; empty if there is one.
  std::string reason;
  // The rule of forward mode; null: `rule` is transposed.
  ForwardRule forward = nullptr;
};

// Rules by op, and by the names that `_gradient_op_type` attributes use.
// Thread-safe. Entries are never removed, and their addresses are stable; one
// is replaced only while no other thread makes gradients that need it.
class RuleTable {
 public:
  // The table with the rules of all built-in ops. Programs add theirs to it
  // before they make gradients.
  static RuleTable& global();

  // Replaces an existing entry, its forward rule included.
  void add(std::string_view op, Rule rule);
  // Several ops with one rule.
  void add(std::initializer_list<std::string_view> ops, Rule rule);
  // Ops without a derivative, or with a derivative of zero, and the reason:
  // "its result is an index".
  void add_none(std::initializer_list<std::string_view> ops,
                std::string_view reason);
  // The rule for nodes whose `_gradient_op_type` is `name`, instead of their
  // op's.
  void add_custom(std::string_view name, Rule rule);

  // Rules of forward mode. REQUIRES: the ops have rules.
  void add_forward(std::initializer_list<std::string_view> ops,
                   ForwardRule rule);

  // Null if the table has no entry.
  const RuleEntry* find(std::string_view op) const;
  const RuleEntry* find_custom(std::string_view name) const;
  // The ops that have entries, in no order.
  std::vector<std::string> ops() const;

 private:
  mutable std::shared_mutex mutex_;  // guards the below
  std::unordered_map<std::string, RuleEntry> by_op_;
  std::unordered_map<std::string, RuleEntry> custom_;
};

// The global table's entry for a node, or null. Returns NotFound if the node
// requests a custom gradient that is not registered.
Result<const RuleEntry*> rule_of(const Node& node);

}  // namespace tagflow::autodiff
