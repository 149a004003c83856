// Optimizers: update variables by the gradients of a loss.
//
//   const VariableScope vars;                  // made the weights, too
//   const Optimizer adam = optimizers::adam(vars, 0.001);
//   adam.minimize(s.named("train"), loss, vars.trainable_variables());
//   vars.initialize(s.named("init"));          // after it: slots are variables
//
// Each update is one op ResourceApply* per variable, so that a step can be run
// from outside, or be in the body of a while_loop(). The state of an optimizer
// for a variable is in its slots, which are variables named as in TensorFlow 1:
// "w/Adam", "w/Adam_1". Thread-compatible, together with the graph and its
// variables.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/gradient.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::autodiff {

// The gradient of a loss by a variable, or by one part of a partitioned one.
struct VariableGradient {
  graph::ScopedVariable variable;
  Gradient gradient;  // invalid: the loss does not depend on it
  size_t part = 0;    // of variable.parts()
};

// The gradients of the sum of `loss` by all parts of the variables, in order.
// If the loss is in the body of a loop, only reads of its own iteration
// count. The scope fails as for gradients().
std::vector<VariableGradient> compute_gradients(
    const graph::Scope& s, const Output& loss,
    const std::vector<graph::ScopedVariable>& variables);

// The variable "global_step" of `vars`, an int64 scalar that begins as 0. Later
// calls return the same variable.
graph::ScopedVariable global_step(const graph::Scope& s,
                                  const graph::VariableScope& vars);

// Transforms a list of gradients into another of the same length; clip.h has
// some.
using GradientTransform = std::function<std::vector<Gradient>(
    const graph::Scope&, const std::vector<Gradient>&)>;

struct ApplyOptions {
  // 1 is added to this variable after all updates; global_step() makes one.
  graph::ScopedVariable global_step = {};
  // Applied to the gradients before the updates.
  GradientTransform transform = {};
};

// An algorithm that one of the ops ResourceApply* computes; optimizers.h has
// the usual ones. minimize() fails if the op is unknown (Unimplemented) or
// the rule does not define one of its arguments (InvalidArgument).
struct UpdateRule {
  struct Slot {
    std::string argument;  // the op's argument: "ms"
    std::string name;      // for Optimizer::slot(): "rms"
    double initial = 0;
  };
  struct Power {
    std::string argument;  // "beta1_power", and the name of the variable
    double base = 1;       // its first value, and its factor per step
  };
  std::string name;              // "Adam": the slots of w are "w/Adam", ...
  std::string op;                // "Adam": ResourceApplyAdam
  std::vector<Slot> slots = {};  // variables are made in this order
  std::vector<Power> powers = {};
  // All other scalars of the op, except "lr" or "alpha", the learning rate.
  std::map<std::string, graph::Input> scalars = {};
  AttrMap attrs = {};
  // Makes sparse gradients dense, so that rows without a gradient are updated,
  // too. Always done if the op has no counterpart ResourceSparseApply*.
  bool dense = false;
  // Also subtracts rate * weight_decay * w from w, if `decays` is empty or true
  // for the variable; with a sparse gradient, from its rows only.
  double weight_decay = 0;
  std::function<bool(const graph::ScopedVariable&)> decays = {};
};

// A value: copies are the same optimizer and share its slots. After an error of
// the scope the results of all functions are invalid.
class Optimizer {
 public:
  // Slots are made in `vars`, without its partitioner and initializer.
  // `learning_rate` is a floating-point scalar, such as one of schedule.h.
  Optimizer(const graph::VariableScope& vars, graph::Input learning_rate,
            UpdateRule rule);

  // An operation that updates the variables once, by the gradients of the sum
  // of `loss`, a floating-point tensor. A fetch of the loss in the same run
  // gives its value before the step. The operation has the name of the scope.
  // The scope fails if gradients() does, or if no variable has a
  // gradient.
  Output minimize(const graph::Scope& s, const Output& loss,
                  const std::vector<graph::ScopedVariable>& variables,
                  const ApplyOptions& options = {}) const;
  // Minimizes by the given gradients; invalid ones are skipped. Each has the
  // shape of its part, or is sparse with rows of it, whose indices may repeat.
  // No update begins before all gradients and the scope's control dependencies
  // are done.
  Output apply_gradients(const graph::Scope& s,
                         const std::vector<VariableGradient>& gradients,
                         const ApplyOptions& options = {}) const;
  // Invalid if the optimizer has not updated that variable, or has no slot
  // of that name.
  graph::ScopedVariable slot(const graph::ScopedVariable& variable,
                             std::string_view name) const;

 private:
  struct State;
  class Step;
  std::shared_ptr<State> state_;
};

}  // namespace tagflow::autodiff
