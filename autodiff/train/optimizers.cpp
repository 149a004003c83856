#include "autodiff/train/optimizers.h"

namespace tagflow::autodiff::optimizers {

using graph::Input;
using graph::VariableScope;

namespace {

UpdateRule adam_rule(const AdamOptions& o) {
  return {.name = "Adam",
          .op = "Adam",
          .slots = {{"m", "m"}, {"v", "v"}},
          .powers = {{"beta1_power", o.beta1}, {"beta2_power", o.beta2}},
          .scalars = {{"beta1", o.beta1},
                      {"beta2", o.beta2},
                      {"epsilon", o.epsilon}},
          .dense = !o.lazy};
}

}  // namespace

Optimizer sgd(const VariableScope& vars, const Input& learning_rate) {
  return Optimizer(vars, learning_rate,
                   {.name = "GradientDescent", .op = "GradientDescent"});
}

Optimizer momentum(const VariableScope& vars, const Input& learning_rate,
                   const MomentumOptions& options) {
  return Optimizer(vars, learning_rate,
                   {.name = "Momentum",
                    .op = "Momentum",
                    .slots = {{"accum", "momentum"}},
                    .scalars = {{"momentum", options.momentum}},
                    .attrs = {{"use_nesterov", options.nesterov}}});
}

Optimizer adagrad(const VariableScope& vars, const Input& learning_rate,
                  const AdagradOptions& options) {
  return Optimizer(
      vars, learning_rate,
      {.name = "Adagrad",
       .op = "Adagrad",
       .slots = {{"accum", "accumulator", options.initial_accumulator}}});
}

Optimizer rmsprop(const VariableScope& vars, const Input& learning_rate,
                  const RmspropOptions& options) {
  UpdateRule rule{.name = "RMSProp",
                  .op = options.centered ? "CenteredRMSProp" : "RMSProp",
                  .slots = {{"ms", "rms", 1}},
                  .scalars = {{"rho", options.decay},
                              {"momentum", options.momentum},
                              {"epsilon", options.epsilon}}};
  if (options.centered) rule.slots.push_back({"mg", "mg"});
  rule.slots.push_back({"mom", "momentum"});
  return Optimizer(vars, learning_rate, std::move(rule));
}

Optimizer adam(const VariableScope& vars, const Input& learning_rate,
               const AdamOptions& options) {
  return Optimizer(vars, learning_rate, adam_rule(options));
}

Optimizer adamw(const VariableScope& vars, const Input& learning_rate,
                const AdamwOptions& options) {
  UpdateRule rule = adam_rule(options.adam);
  rule.name = "AdamW";
  rule.weight_decay = options.weight_decay;
  rule.decays = options.decays;
  return Optimizer(vars, learning_rate, std::move(rule));
}

}  // namespace tagflow::autodiff::optimizers
