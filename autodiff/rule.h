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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

using graph::Node;
using graph::Outputs;
using graph::Scope;

class Region;  // autodiff/region.h

// Attributes of an IdentityN of outputs and inputs of another node, which
// stands for that in a copy (Note [Recomputation] in autodiff/recomputation.h):
// its op, and how many outputs it has. Its attributes are there with a '_' in
// front.
inline constexpr std::string_view kStandsForAttr = "_stands_for";
inline constexpr std::string_view kStandInOutputsAttr = "_stand_in_outputs";

// One node, the gradients of its outputs, and where to put those of its
// inputs. A rule runs once, when the gradient is built. What it makes of what
// this returns may be in another loop than the node: so a rule takes the node's
// values from here only, and never from node().inputs().
//
// Each gradient that a rule sets must be computed from grad() or slices(), of
// some port: it is then live exactly where the node is. A rule that finds
// nothing to add sets nothing.
//
// After an error (fail(), or one of the scope) all that this returns is
// harmless. Thread-compatible.
class RuleContext {
 public:
  // `grads`: by output; invalid ones where y does not depend on it. Of the
  // node's inputs, those from `first_input` on are the rule's.
  RuleContext(Region& region, const Node& node, std::vector<Gradient> grads,
              std::vector<bool> wanted, size_t first_input = 0);

  // --- The node
  const Node& node() const { return node_; }
  int num_inputs() const;
  int num_outputs() const;
  DataType input_dtype(int input) const;
  // An attribute; T() and a failure where the node has none of that type.
  template <class T>
  T attr(std::string_view name) const;

  // Where the gradient's nodes are made. Its ops get the node's device.
  const Scope& scope() const { return scope_; }

  // --- What comes in. At least one output has a gradient.
  bool has_grad(int port = 0) const;
  // Dense; zeros of the output's shape where it has none.
  Output grad(int port = 0);
  // As it is; not valid where there is none.
  const Gradient& slices(int port = 0) const { return grads_[size_t(port)]; }

  // --- The node's values, as they were when it ran. In a loop each one that is
  // used here is saved in every iteration: ask for as little as will do.
  Output input(int input);
  Output output(int port = 0);
  // Their run-time shapes, vectors of int32 (or int64): constants where known.
  Output input_shape(int input, DataType dtype = DataType::kInt32);
  Output output_shape(int port = 0, DataType dtype = DataType::kInt32);
  // What output `port` of another op gives where the node runs, saved as the
  // node's values are: such as the length of a list, which is not to be saved
  // itself. `inputs` are tensors of the node's own graph, its inputs or
  // outputs; at least one.
  Output forward(std::string_view op, std::vector<graph::Endpoint> inputs,
                 AttrMap attrs = {}, int port = 0);
  // What is known of them when the graph is built.
  const PartialShape& known_input_shape(int input) const;
  const PartialShape& known_output_shape(int port = 0) const;

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

  // --- Helpers
  // Of a complex tensor its conjugate, and of others themselves: the gradient
  // of a holomorphic op f is grad * conj(f'), as in TensorFlow.
  Output conj(Output x) const;
  // A scalar of the type of `like`.
  Output scalar(double value, Output like) const;
  // An int32 vector.
  Output ints(const std::vector<int64_t>& values) const;
  // Zeros of input's type and shape.
  Output zeros_like_input(int input);
  // Ends the making of gradients: "[op] node "n" has no gradient: why".
  void fail(std::string why) const;

  // --- For autodiff/ only.
  std::vector<Gradient> take_results() && { return std::move(results_); }
  Region& region() { return region_; }

 private:
  graph::Endpoint tensor_of_input(int input) const {
    return node_.inputs()[first_input_ + size_t(input)];
  }

  Region& region_;
  const Node& node_;
  const size_t first_input_;
  Scope scope_;
  std::vector<Gradient> grads_;
  std::vector<bool> wanted_;
  std::vector<Gradient> results_;  // by input
};

using Rule = void (*)(RuleContext&);

// What the table says of an op.
struct RuleEntry {
  // Null: its outputs do not depend on its inputs in a way that has a
  // derivative, other than zero: paths from x to y do not lead through it.
  Rule rule = nullptr;
  // Why there is none; empty where there is one.
  std::string reason;
};

// Rules by op, and by the names that `_gradient_op_type` attributes use.
class RuleTable {
 public:
  // With the rules of all built-in ops; programs add theirs to it before they
  // make gradients. Thread-safe only in that.
  static RuleTable& global();

  // Replaces an entry that is there.
  void add(std::string_view op, Rule rule);
  // Several ops with one rule.
  void add(std::initializer_list<std::string_view> ops, Rule rule);
  // Ops whose derivative is zero or that have none, and why: "its result is an
  // index".
  void add_none(std::initializer_list<std::string_view> ops,
                std::string_view reason);
  // For nodes whose `_gradient_op_type` is `name`, in place of their op's rule.
  void add_custom(std::string_view name, Rule rule);

  // Null where nothing is said of it.
  const RuleEntry* find(std::string_view op) const;
  const RuleEntry* find_custom(std::string_view name) const;
  // Those of which something is said, in no order.
  std::vector<std::string> ops() const;

 private:
  std::unordered_map<std::string, RuleEntry> by_op_;
  std::unordered_map<std::string, RuleEntry> custom_;
};

template <class T>
T RuleContext::attr(std::string_view name) const {
  Result<T> value = first_input_ == 0 ? node_.attr<T>(name)
                                      : node_.attr<T>(fmt::format("_{}", name));
  if (value.ok()) return *std::move(value);
  scope_.fail(std::move(value).status());
  return T();
}

}  // namespace tagflow::autodiff
