// Element-wise ops of one tensor, and the ops that are gradients of such.
#include <fmt/format.h>

#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/rules.h"

namespace tagflow::autodiff {
namespace {

// The gradient of y = f(x), where f'(x) is `slope`.
void set_by_slope(RuleContext& r, const Output& slope) {
  r.set(0, ops::mul(r.scope(), r.grad(), r.conj(slope)));
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
  table.add({"CheckNumerics", "CheckNumericsV2"}, [](RuleContext& r) {
    const auto message =
        fmt::format("in the gradient of what is checked as: {}",
                    r.attr<std::string>("message"));
    r.set(0, r.scope().op(r.node().op(), {r.grad()}, {{"message", message}}));
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

// z = dy f(y), or dy f(conj(y)): SigmoidGrad and TanhGrad take y as it is, the
// others conjugate it. Either way the op itself, of conj(y), gives the gradient
// of dy.
void set_upstream(RuleContext& r) {
  if (!r.wants(1)) return;
  r.set(1, r.scope().op(r.node().op(), {r.conj(r.input(0)), r.grad()}));
}

// `x` times the gradient z of dz: 0 where that is 0, even if x is not finite.
Output times_upstream(RuleContext& r, const Output& x) {
  return r.scope().op("MulNoNan", {x, r.conj(r.grad())});
}

// The op is 0 where dy is 0, and so are the gradients by y of those below.
void add_unary_gradient_rules(RuleTable& table) {
  table.add("SigmoidGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output slope = ops::sub(s, 1, ops::mul(s, r.input(0), 2));
    set_by_slope(r, ops::mul(s, r.input(1), slope));
  });
  table.add("TanhGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    set_by_slope(r, ops::mul(s, ops::mul(s, r.input(0), r.input(1)), -2));
  });
  // z = dy / 2w with w = conj(y): conj(dz) z' = -conj(dz) z / w.
  table.add("SqrtGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output w = r.conj(r.input(0));
    const Output ratio = s.op("MulNoNan", {ops::reciprocal(s, w), r.output()});
    r.set(0, ops::neg(s, times_upstream(r, ratio)));
  });
  // z = -dy w^3 / 2: conj(dz) z' = -3/2 conj(dz) dy w^2.
  table.add("RsqrtGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    // Not of w^2, whose own gradient of 0 would be multiplied by w.
    const Output w = r.conj(r.input(0));
    const Output slope =
        s.op("MulNoNan", {w, s.op("MulNoNan", {w, r.input(1)})});
    r.set(0, times_upstream(r, ops::mul(s, slope, -1.5)));
  });
  // z = -dy w^2: conj(dz) z' = -2 conj(dz) dy w.
  table.add({"ReciprocalGrad", "InvGrad"}, [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output w = r.conj(r.input(0));
    const Output slope = s.op("MulNoNan", {w, r.input(1)});
    r.set(0, times_upstream(r, ops::mul(s, slope, -2)));
  });
}

}  // namespace

void add_elementwise_rules(RuleTable& table) {
  add_linear_rules(table);
  add_power_rules(table);
  add_trigonometric_rules(table);
  add_hyperbolic_rules(table);
  add_unary_gradient_rules(table);
}

}  // namespace tagflow::autodiff
