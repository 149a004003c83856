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
// Each gradient that a rule sets must be computed from grad() or slices(), of
// some port: it is then live exactly where the node is. A rule that finds
// nothing to add sets nothing.
class RuleContext : public NodeContext {
 public:
  // `grads`: by output; invalid ones where y does not depend on it. Nodes are
  // made below `name`. Of the node's inputs, those from `first_input` on are
  // the rule's.
  RuleContext(Region& region, const Node& node, std::string_view name,
              std::vector<Gradient> grads, std::vector<bool> wanted,
              size_t first_input = 0);

  // --- What comes in. At least one output has a gradient.
  bool has_grad(int port = 0) const;
  // Dense; zeros of the output's shape where it has none.
  Output grad(int port = 0);
  // As it is; not valid where there is none.
  const Gradient& slices(int port = 0) const { return grads_[size_t(port)]; }

  // --- What goes out.
  // Whether the gradient of that input is asked for.
  bool wants(int input) const { return wanted_[size_t(input)]; }
  // Each input at most once; no effect where it is not wanted, or the gradient
  // is not valid.
  void set(int input, Output gradient);
  // Summed over the dimensions along which the op has broadcast the input.
  // REQUIRES: the op has two inputs, or more whose shapes are broadcast to that
  // of output 0.
  void set_broadcast(int input, Output gradient);
  // Rows of the input along its first dimension.
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

// What the table says of an op.
struct RuleEntry {
  // Null: its outputs do not depend on its inputs in a way that has a
  // derivative, other than zero: paths from x to y do not lead through it.
  Rule rule = nullptr;
  // Why there is none; empty where there is one.
  std::string reason;
  // The same in forward mode; null: `rule` is transposed.
  ForwardRule forward = nullptr;
};

// Rules by op, and by the names that `_gradient_op_type` attributes use.
// Thread-safe. Entries are never removed, and stay where they are; one is
// replaced only while no other thread makes gradients that need it.
class RuleTable {
 public:
  // With the rules of all built-in ops; programs add theirs to it before they
  // make gradients.
  static RuleTable& global();

  // Replaces an entry that is there, with its rule of forward mode.
  void add(std::string_view op, Rule rule);
  // Several ops with one rule.
  void add(std::initializer_list<std::string_view> ops, Rule rule);
  // Ops whose derivative is zero or that have none, and why: "its result is an
  // index".
  void add_none(std::initializer_list<std::string_view> ops,
                std::string_view reason);
  // For nodes whose `_gradient_op_type` is `name`, in place of their op's rule.
  void add_custom(std::string_view name, Rule rule);

  // Rules of forward mode. REQUIRES: the ops have rules.
  void add_forward(std::initializer_list<std::string_view> ops,
                   ForwardRule rule);

  // Null where nothing is said of it.
  const RuleEntry* find(std::string_view op) const;
  const RuleEntry* find_custom(std::string_view name) const;
  // Those of which something is said, in no order.
  std::vector<std::string> ops() const;

 private:
  mutable std::shared_mutex mutex_;  // guards the below
  std::unordered_map<std::string, RuleEntry> by_op_;
  std::unordered_map<std::string, RuleEntry> custom_;
};

// What the global table says of a node; null where it says nothing. NotFound
// where the node asks for a custom gradient that is not registered.
Result<const RuleEntry*> rule_of(const Node& node);

}  // namespace tagflow::autodiff
