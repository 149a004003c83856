// The implementation of Optimizer. Internal to autodiff/train.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/train/optimizer.h"

namespace tagflow::autodiff {

// The state that copies share.
struct Optimizer::State {
  graph::VariableScope vars;
  graph::Input learning_rate;
  UpdateRule rule;
  // By the name of their variable, in the order of the rule's slots.
  std::map<std::string, std::vector<graph::ScopedVariable>> slots = {};
  std::vector<graph::ScopedVariable> powers = {};

  // Makes the slots if there are none yet.
  const std::vector<graph::ScopedVariable>& slots_of(
      const graph::Scope& s, const graph::ScopedVariable& variable);
  const std::vector<graph::ScopedVariable>& all_powers(const graph::Scope& s,
                                                       DataType dtype);

 private:
  graph::ScopedVariable make(const graph::Scope& s, const std::string& name,
                             const Shape& shape, double initial,
                             graph::VariableOptions options) const;
};

// Builds the ops of one step, which are in `in`.
class Optimizer::Step {
 public:
  Step(const graph::Scope& in, State& state)
      : in_(in), after_(in), state_(state), rule_(state.rule) {}

  // The operation, made in `s`. Updates wait for `before`, and all gradients.
  Output run(const graph::Scope& s, std::vector<VariableGradient> list,
             graph::Outputs before, const ApplyOptions& options);

 private:
  void transform(std::vector<VariableGradient>& list,
                 const GradientTransform& fn) const;
  Status check(const std::vector<VariableGradient>& list,
               const ApplyOptions& options) const;
  // Adds the last operations, which run after all updates.
  graph::Outputs finish(const graph::Outputs& updates,
                        const ApplyOptions& options);
  Output update(const VariableGradient& one);
  // The gradient as the ops take it: dense, or with unique rows.
  Gradient usable(const Gradient& gradient, const Shape& shape) const;
  // Subtracts the weight decay, from all rows or those of the gradient.
  Output decay(const graph::ops::Variable& v, const Gradient& gradient);
  // An input of the op.
  graph::Input argument(const std::string& name, const VariableGradient& one,
                        const Gradient& gradient);
  // A scalar of the type, made once.
  Output scalar(const std::string& name, const graph::Input& value,
                DataType dtype);
  Output rate(DataType dtype) {
    return scalar("learning_rate", state_.learning_rate, dtype);
  }

  const graph::Scope in_;
  graph::Scope after_;  // waits for the gradients
  State& state_;
  const UpdateRule& rule_;
  std::map<std::pair<std::string, DataType>, Output> scalars_;
  std::map<std::string, Output> powers_;  // by argument, as they are read
};

}  // namespace tagflow::autodiff
