// Element-wise ops of one tensor.
#include "autodiff/region.h"
#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/elementwise_rules.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

// In a loop this would save the argument as well as the result, which the state
// of a recurrent network often is, so there the gradient op serves. Where a
// block of the loop is computed again, its gradient has the same bits.
bool argument_is_costly(RuleContext& r) {
  return is_complex(r.input_dtype(0)) ||
         r.region().frame() != graph::FrameId::kRoot ||
         r.region().analysis().is_in_loop();
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

// The gradient of y = f(x), where f'(x) is 1 / `divisor`.
void set_by_divisor(RuleContext& r, const Output& divisor) {
  r.set(0, ops::real_div(r.scope(), r.grad(), r.conj(divisor)));
}

// (1 - x)(1 + x), which is more exact near 1 than 1 - x^2.
Output one_minus_square(const Scope& s, const Output& x) {
  return ops::mul(s, ops::sub(s, 1, x), ops::add(s, 1, x));
}

Output one_plus_square(const Scope& s, const Output& x) {
  return ops::add(s, 1, ops::square(s, x));
}

// Constant, except for complex numbers, where y = x / |x|. With g the gradient
// of y, and dy = dx / |x| - x Re(conj(x) dx) / |x|^3, that of x is (g - y
// Re(conj(y) g)) / |x|.
void sign_rule(RuleContext& r) {
  const DataType dtype = r.input_dtype(0);
  if (!is_complex(dtype)) return;
  const Scope& s = r.scope();
  const Output y = r.output();
  const Output size =
      s.op("ComplexAbs", {r.input(0)}, {{"Tout", part_dtype(dtype)}});
  const Output along =
      ops::mul(s, y, real_part(s, ops::mul(s, r.conj(y), r.grad())));
  r.set(0, ops::div_no_nan(s, ops::sub(s, r.grad(), along),
                           ops::cast(s, size, dtype)));
}

void add_linear_rules(RuleTable& table) {
  table.add("Neg",
            [](RuleContext& r) { r.set(0, ops::neg(r.scope(), r.grad())); });
  table.add("Abs", [](RuleContext& r) {
    set_by_slope(r, ops::sign(r.scope(), r.input(0)));
  });
  table.add("Sign", sign_rule);
  // If a complex number becomes real, the gradient is real; the other way round
  // only the real part of the gradient counts. Cast does both.
  table.add("Cast", [](RuleContext& r) {
    r.set(0, ops::cast(r.scope(), r.grad(), r.input_dtype(0)));
  });
}

void add_power_rules(RuleTable& table) {
  table.add("Square", [](RuleContext& r) {
    set_by_slope(r, ops::mul(r.scope(), r.input(0), 2));
  });
  table.add("Sqrt", [](RuleContext& r) {
    r.set(0, r.scope().op("SqrtGrad", {r.output(), r.grad()}));
  });
  table.add("Rsqrt", [](RuleContext& r) {
    r.set(0, r.scope().op("RsqrtGrad", {r.output(), r.grad()}));
  });
  table.add({"Reciprocal", "Inv"}, [](RuleContext& r) {
    r.set(0, r.scope().op("ReciprocalGrad", {r.output(), r.grad()}));
  });
  table.add("Exp", [](RuleContext& r) { set_by_slope(r, r.output()); });
  // y + 1 would have no digits left where y is near -1.
  table.add("Expm1", [](RuleContext& r) {
    set_by_slope(r, ops::exp(r.scope(), r.input(0)));
  });
  table.add("Log", [](RuleContext& r) { set_by_divisor(r, r.input(0)); });
  table.add("Log1p", [](RuleContext& r) {
    set_by_divisor(r, ops::add(r.scope(), 1, r.input(0)));
  });
}

void add_trigonometric_rules(RuleTable& table) {
  table.add("Sin", [](RuleContext& r) {
    set_by_slope(r, ops::cos(r.scope(), r.input(0)));
  });
  table.add("Cos", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_by_slope(r, ops::neg(s, ops::sin(s, r.input(0))));
  });
  table.add("Tan", [](RuleContext& r) {
    set_by_slope(r, one_plus_square(r.scope(), r.output()));
  });
  table.add("Asin", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_by_divisor(r, ops::sqrt(s, one_minus_square(s, r.input(0))));
  });
  table.add("Acos", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output root = ops::sqrt(s, one_minus_square(s, r.input(0)));
    set_by_divisor(r, ops::neg(s, root));
  });
  table.add("Atan", [](RuleContext& r) {
    set_by_divisor(r, one_plus_square(r.scope(), r.input(0)));
  });
}

void add_hyperbolic_rules(RuleTable& table) {
  table.add("Sinh", [](RuleContext& r) {
    set_by_slope(r, r.scope().op("Cosh", {r.input(0)}));
  });
  table.add("Cosh", [](RuleContext& r) {
    set_by_slope(r, r.scope().op("Sinh", {r.input(0)}));
  });
  // The roots of x^2 + 1 and x^2 - 1, by functions of y that do not overflow.
  table.add("Asinh", [](RuleContext& r) {
    set_by_divisor(r, r.scope().op("Cosh", {r.output()}));
  });
  table.add("Acosh", [](RuleContext& r) {
    set_by_divisor(r, r.scope().op("Sinh", {r.output()}));
  });
  table.add("Atanh", [](RuleContext& r) {
    set_by_divisor(r, one_minus_square(r.scope(), r.input(0)));
  });
}

void add_sigmoid_rules(RuleTable& table) {
  table.add("Sigmoid", sigmoid_rule);
  table.add("Tanh", tanh_rule);
  table.add("Softsign", [](RuleContext& r) {
    r.set(0, r.scope().op("SoftsignGrad", {r.grad(), r.input(0)}));
  });
}

void add_elementwise_reasons(RuleTable& table) {
  no_gradient(table, "Ceil Floor Rint Round",
              "its result is constant but for jumps");
  no_gradient(table,
              "ApproximateEqual Equal Greater GreaterEqual IsFinite IsInf "
              "IsNan Less LessEqual NotEqual ToBool",
              "its result is true or false");
  no_gradient(table, "LogicalAnd LogicalNot LogicalOr",
              "it is about true and false");
  no_gradient(
      table,
      "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift PopulationCount "
      "RightShift",
      "it is about integers");
  no_gradient(table, "Bitcast", "it reinterprets the bits of a number");
  no_gradient(table, "BroadcastGradientArgs",
              "its result depends on shapes alone");
}

void add_elementwise_forward_rules(RuleTable& table) {
  table.add_forward(
      {"Abs",   "Square", "Sqrt",  "Rsqrt",   "Reciprocal", "Inv",
       "Exp",   "Expm1",  "Log",   "Log1p",   "Sin",        "Cos",
       "Tan",   "Asin",   "Acos",  "Atan",    "Sinh",       "Cosh",
       "Asinh", "Acosh",  "Atanh", "Sigmoid", "Tanh",       "Softsign"},
      symmetric);
  table.add_forward({"Neg", "Cast", "BroadcastTo"}, linear<0>);
}

}  // namespace

void add_elementwise_rules(RuleTable& table) {
  add_linear_rules(table);
  add_power_rules(table);
  add_trigonometric_rules(table);
  add_hyperbolic_rules(table);
  add_sigmoid_rules(table);
  table.add("BroadcastTo",
            [](RuleContext& r) { r.set_broadcast(0, r.grad()); });
  table.add("_FusedElementwise", fused_rule);
  add_elementwise_reasons(table);
  add_elementwise_forward_rules(table);
  add_elementwise_binary_rules(table);
  add_elementwise_complex_rules(table);
}

}  // namespace tagflow::autodiff
