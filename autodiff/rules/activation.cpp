// Activation functions and the ops that are their gradients.
#include "autodiff/region.h"
#include "autodiff/rule.h"
#include "autodiff/rules/rules.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_nn.h"

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

// In a loop this would save the argument as well as the result, which the state
// of a recurrent network often is, so there the gradient op serves.
bool argument_is_costly(RuleContext& r) {
  return is_complex(r.input_dtype(0)) ||
         r.region().frame() != graph::FrameId::kRoot;
}

// sigmoid(x) sigmoid(-x).
void sigmoid_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (argument_is_costly(r))
    return r.set(0, s.op("SigmoidGrad", {r.conj(r.output()), r.grad()}));
  const Output other = ops::sigmoid(s, ops::neg(s, r.input(0)));
  r.set(0, ops::mul(s, r.grad(), ops::mul(s, r.output(), other)));
}

// (1 + y)(1 - y) = 2 sigmoid(2x) 2 sigmoid(-2x).
void tanh_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (argument_is_costly(r))
    return r.set(0, s.op("TanhGrad", {r.conj(r.output()), r.grad()}));
  const Output x = r.input(0);
  const Output slope = ops::mul(s, ops::sigmoid(s, ops::mul(s, x, 2)),
                                ops::sigmoid(s, ops::mul(s, x, -2)));
  r.set(0, ops::mul(s, r.grad(), ops::mul(s, slope, 4)));
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

// The slope (1 + |x|)^-2 has the derivative -2 sign(x) (1 + |x|)^-3.
void softsign_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  set_by_same_op(r);
  if (!r.wants(1)) return;
  const Output x = r.input(1);
  const Output change = ops::real_div(s, ops::mul(s, ops::sign(s, x), -2),
                                      ops::add(s, ops::abs(s, x), 1));
  const Output sloped =
      s.op("SoftsignGrad", {ops::mul(s, r.grad(), r.input(0)), x});
  r.set(1, ops::mul(s, sloped, change));
}

}  // namespace

void add_activation_rules(RuleTable& table) {
  table.add("Sigmoid", sigmoid_rule);
  table.add("Tanh", tanh_rule);
  table.add("Elu", [](RuleContext& r) { exponential_rule(r, 1, 1); });
  table.add("Selu", [](RuleContext& r) {
    exponential_rule(r, kSeluScale * kSeluAlpha, kSeluScale);
  });
  table.add({"Relu", "Relu6"}, gradient_by_output);
  table.add({"Softplus", "Softsign"}, gradient_by_input);
  table.add("LeakyRelu", leaky_relu_rule);
  table.add({"ReluGrad", "Relu6Grad"}, piecewise_linear_grad_rule);
  table.add("LeakyReluGrad", leaky_relu_grad_rule);
  table.add({"EluGrad", "SeluGrad"}, exponential_grad_rule);
  table.add("SoftplusGrad", softplus_grad_rule);
  table.add("SoftsignGrad", softsign_grad_rule);
}

}  // namespace tagflow::autodiff
