// Optimizers: what moves variables along the gradients of a loss.
//
//   const VariableScope vars;                  // made the weights, too
//   const Optimizer adam = optimizers::adam(vars, 0.001);
//   adam.minimize(s.named("train"), loss, vars.trainable_variables());
//   vars.initialize(s.named("init"));          // after it: slots are variables
//
// Each update is one op ResourceApply* per variable, so that a step can be run
// from outside, or be in the body of a while_loop(). What an optimizer keeps of
// a variable, its slots, are variables named as TensorFlow 1 names them:
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
// Where the loss is in the body of a loop, they are those by what its own
// iteration reads. The scope fails as gradients() says.
std::vector<VariableGradient> compute_gradients(
    const graph::Scope& s, const Output& loss,
    const std::vector<graph::ScopedVariable>& variables);

// The variable "global_step" of `vars`, an int64 scalar that begins as 0.
// Whoever asks again gets the same one.
graph::ScopedVariable global_step(const graph::Scope& s,
                                  const graph::VariableScope& vars);

// Makes another list of gradients, of the same length; clip.h has some.
using GradientTransform = std::function<std::vector<Gradient>(
    const graph::Scope&, const std::vector<Gradient>&)>;

struct ApplyOptions {
  // 1 is added to this variable after all updates; global_step() makes one.
  graph::ScopedVariable global_step = {};
  // What becomes of the gradients before they are applied.
  GradientTransform transform = {};
};

// An algorithm, as one of the ops ResourceApply* computes it; optimizers.h has
// the usual ones. minimize() fails where the op is unknown (Unimplemented) or
// the rule does not say what one of its arguments is (InvalidArgument).
struct UpdateRule {
  struct Slot {
    std::string argument;  // that of the op: "ms"
    std::string name;      // for Optimizer::slot(): "rms"
    double initial = 0;
  };
  struct Power {
    std::string argument;  // "beta1_power", and the name of the variable
    double base = 1;       // what it begins as, and is multiplied by each step
  };
  std::string name;              // "Adam": the slots of w are "w/Adam", ...
  std::string op;                // "Adam": ResourceApplyAdam
  std::vector<Slot> slots = {};  // variables are made in this order
  std::vector<Power> powers = {};
  // All other scalars of the op, but "lr" or "alpha", the learning rate.
  std::map<std::string, graph::Input> scalars = {};
  AttrMap attrs = {};
  // Sparse gradients are made dense, so that rows without a gradient move, too.
  // It is done anyway where the op has no twin ResourceSparseApply*.
  bool dense = false;
  // rate * weight_decay * w is subtracted from w as well, if `decays` is empty
  // or true of the variable; a sparse gradient does that to its rows alone.
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

  // An operation that moves the variables once, by the gradients of the sum of
  // `loss`, a floating-point tensor. The loss that is fetched with it is that
  // before the step. The operation is named as the scope says. The scope fails
  // where gradients() does, or no variable has a gradient.
  Output minimize(const graph::Scope& s, const Output& loss,
                  const std::vector<graph::ScopedVariable>& variables,
                  const ApplyOptions& options = {}) const;
  // The same by gradients that are there; invalid ones are left out. Each is
  // of the shape of its part, or has rows of it, whose indices may repeat. No
  // update begins before all gradients, and what the scope waits for, are done.
  Output apply_gradients(const graph::Scope& s,
                         const std::vector<VariableGradient>& gradients,
                         const ApplyOptions& options = {}) const;
  // Invalid where the optimizer has not moved that variable, or has no slot of
  // that name.
  graph::ScopedVariable slot(const graph::ScopedVariable& variable,
                             std::string_view name) const;

 private:
  struct State;
  class Step;
  std::shared_ptr<State> state_;
};

}  // namespace tagflow::autodiff
