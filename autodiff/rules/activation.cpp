// Activation functions and the ops that are their gradients, and biases.
#include <array>

#include "autodiff/rule.h"
#include "autodiff/rules/activation_rules.h"
#include "autodiff/rules/forward.h"
#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// The constants of "Self-Normalizing Neural Networks" (Klambauer, 2017).
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

// By the gradient op, from the function's result, ...
void gradient_by_output(RuleContext& r) {
  r.set(0, r.scope().op(r.node().op() + "Grad", {r.grad(), r.output()}));
}

// ... or from its argument.
void gradient_by_input(RuleContext& r) {
  r.set(0, r.scope().op(r.node().op() + "Grad", {r.grad(), r.input(0)}));
}

// The results of the following round to a limit where their slopes are far from
// 0 as yet, so the slopes come from the argument.

// e^x where x is negative, times `scale`; elsewhere `line`.
void exponential_rule(RuleContext& r, double scale, double line) {
  const Scope& s = r.scope();
  const Output x = r.input(0);
  // The other side must not overflow: a gradient of 0 would become NaN.
  const Output power = ops::exp(s, ops::minimum(s, x, 0));
  const Output curved =
      ops::mul(s, r.grad(), scale == 1 ? power : ops::mul(s, power, scale));
  const Output straight = line == 1 ? r.grad() : ops::mul(s, r.grad(), line);
  r.set(0, ops::select(s, ops::less(s, x, 0), curved, straight));
}

// The gradient op is linear in the gradients that it takes first.
void set_by_same_op(RuleContext& r) {
  if (!r.wants(0)) return;
  r.set(0, r.scope().op(r.node().op(), {r.grad(), r.input(1)}));
}

// For slopes that are constant on both sides of a kink.
void piecewise_linear_grad_rule(RuleContext& r) { set_by_same_op(r); }

// The result is positive where x > 0, unless alpha is negative.
void leaky_relu_rule(RuleContext& r) {
  const auto alpha = r.attr<float>("alpha");
  r.set(0, r.scope().op("LeakyReluGrad",
                        {r.grad(), alpha < 0 ? r.input(0) : r.output()},
                        {{"alpha", alpha}}));
}

void leaky_relu_grad_rule(RuleContext& r) {
  if (!r.wants(0)) return;
  r.set(0, r.scope().op("LeakyReluGrad", {r.grad(), r.input(1)},
                        {{"alpha", r.attr<float>("alpha")}}));
}

// Where the function's result y is negative, the gradient dy is multiplied by
// y and a constant is added; elsewhere the slope is constant.
void exponential_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  set_by_same_op(r);
  if (!r.wants(1)) return;
  const Output curved = ops::less(s, r.input(1), 0);
  r.set(1, ops::select(s, curved, ops::mul(s, r.grad(), r.input(0)), 0));
}

// The slope sigmoid(x) has the derivative sigmoid(x) sigmoid(-x), which loses
// no digits where x is large.
void softplus_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  set_by_same_op(r);
  if (!r.wants(1)) return;
  const Output x = r.input(1);
  const Output slope =
      ops::mul(s, ops::sigmoid(s, x), ops::sigmoid(s, ops::neg(s, x)));
  r.set(1, ops::mul(s, ops::mul(s, r.grad(), r.input(0)), slope));
}

// --- Biases -----------------------------------------------------------------

void bias_add_rule(RuleContext& r) {
  r.set(0, r.grad());
  if (!r.wants(1)) return;
  // BiasAddV1 has no format: its channels come last.
  const bool has_format = r.node().op() == "BiasAdd";
  const std::string format =
      has_format ? r.attr<std::string>("data_format") : "NHWC";
  r.set(1, r.scope().op("BiasAddGrad", {r.grad()}, {{"data_format", format}}));
}

// The channel's sum is broadcast to all of its elements, like a bias.
void bias_add_grad_rule(RuleContext& r) {
  r.set(0, ops::bias_add(r.scope(), r.zeros_like_input(0), r.grad(),
                         r.attr<std::string>("data_format")));
}

void bias_sum(ForwardContext& r) {
  if (r.has_tangent(1))
    r.set_linear(std::array{0, 1});
  else
    r.set(0, r.tangent(0));
}

}  // namespace

void add_activation_rules(RuleTable& table) {
  table.add("Elu", [](RuleContext& r) { exponential_rule(r, 1, 1); });
  table.add("Selu", [](RuleContext& r) {
    exponential_rule(r, kSeluScale * kSeluAlpha, kSeluScale);
  });
  table.add({"Relu", "Relu6"}, gradient_by_output);
  table.add("Softplus", gradient_by_input);
  table.add("LeakyRelu", leaky_relu_rule);
  table.add({"ReluGrad", "Relu6Grad"}, piecewise_linear_grad_rule);
  table.add("LeakyReluGrad", leaky_relu_grad_rule);
  table.add({"EluGrad", "SeluGrad"}, exponential_grad_rule);
  table.add("SoftplusGrad", softplus_grad_rule);
  table.add({"BiasAdd", "BiasAddV1"}, bias_add_rule);
  table.add("BiasAddGrad", bias_add_grad_rule);
  table.add_forward({"Relu", "Relu6", "Elu", "Selu", "Softplus", "LeakyRelu"},
                    symmetric);
  table.add_forward({"BiasAdd", "BiasAddV1"}, bias_sum);
  add_activation_loss_rules(table);
}

}  // namespace tagflow::autodiff
