// Special functions. The derivatives are those of "NIST Handbook of
// Mathematical Functions" (2010), chapters 5 (gamma), 7 (error function), 8
// (incomplete gamma), 10 (Bessel) and 25 (zeta).
#include <numbers>

#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/forward.h"

namespace tagflow::autodiff {
namespace {

constexpr double kRootPi = 1 / std::numbers::inv_sqrtpi;

void set_special_slope(RuleContext& r, const Output& slope) {
  r.set(0, ops::mul(r.scope(), r.grad(), slope));
}

void set_special_slope(RuleContext& r, int input, const Output& slope) {
  if (r.wants(input))
    r.set_broadcast(input, ops::mul(r.scope(), r.grad(), slope));
}

// For ops of float and double only.
Output at_least_float(const Scope& s, const Output& x) {
  const bool is_short =
      x.dtype() == DataType::kHalf || x.dtype() == DataType::kBFloat16;
  return is_short ? ops::cast(s, x, DataType::kFloat) : x;
}

// --- The error function -----------------------------------------------------

// 2 / sqrt(pi) e^(-x^2).
Output erf_slope(RuleContext& r) {
  const Scope& s = r.scope();
  const Output bell = ops::exp(s, ops::neg(s, ops::square(s, r.input(0))));
  return ops::mul(s, bell, 2 / kRootPi);
}

void add_error_function_rules(RuleTable& table) {
  table.add("Erf", [](RuleContext& r) { set_special_slope(r, erf_slope(r)); });
  table.add("Erfc", [](RuleContext& r) {
    set_special_slope(r, ops::neg(r.scope(), erf_slope(r)));
  });
  // The slope of an inverse function: the reciprocal of the slope at the
  // result.
  table.add("Erfinv", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output bell = ops::exp(s, ops::square(s, r.output()));
    set_special_slope(r, ops::mul(s, bell, kRootPi / 2));
  });
  table.add("Ndtri", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output half_square = ops::mul(s, ops::square(s, r.output()), 0.5);
    set_special_slope(r, ops::mul(s, ops::exp(s, half_square),
                                  std::numbers::sqrt2 * kRootPi));
  });
}

// --- The gamma function -----------------------------------------------------

// The density of the gamma distribution, x^(a-1) e^-x / gamma(a): what Igamma
// integrates. It is an op, since its factors overflow where it does not.
Output gamma_density(const Scope& s, const Output& a, const Output& x) {
  return s.op("_GammaDensity", {a, x});
}

// The derivative of the density's logarithm by a: log(x) - digamma(a).
Output density_growth(const Scope& s, const Output& a, const Output& x) {
  return ops::sub(s, ops::log(s, x), s.op("Digamma", {a}));
}

// By a, the density grows by its product with log(x) - digamma(a). Where it is
// 0, so is its growth.
Output density_slope_by_a(const Scope& s, const Output& a, const Output& x,
                          const Output& density) {
  return ops::sub(s, s.op("Xlogy", {density, x}),
                  ops::mul(s, density, s.op("Digamma", {a})));
}

// By x, by its product with (a - 1 - x) / x. At 0 that has no value, but the
// density of a - 1, less that of a, is the same.
Output density_slope_by_x(const Scope& s, const Output& a, const Output& x,
                          const Output& density) {
  const Output is_zero = ops::equal(s, x, 0);
  const Output less = ops::sub(s, a, 1);
  const Output divisor = ops::select(s, is_zero, 1, x);
  const Output growth = ops::real_div(s, ops::sub(s, less, x), divisor);
  const Output at_zero = ops::sub(s, gamma_density(s, less, x), density);
  return ops::select(s, is_zero, at_zero, ops::mul(s, density, growth));
}

// z = -IgammaGradA(a, x) / density(a, x), so that by x
//   z' = -(log(x) - digamma(a)) - z ((a - 1) / x - 1).
void gamma_sample_grad_rule(RuleContext& r) {
  if (r.wants(0)) return r.fail("its derivative by alpha is not known");
  const Scope& s = r.scope();
  const Output a = r.input(0), x = r.input(1);
  const Output log_slope =
      ops::sub(s, ops::real_div(s, ops::sub(s, a, 1), x), 1);
  set_special_slope(r, 1,
                    ops::neg(s, ops::add(s, density_growth(s, a, x),
                                         ops::mul(s, r.output(), log_slope))));
}

void add_gamma_rules(RuleTable& table) {
  table.add("Lgamma", [](RuleContext& r) {
    set_special_slope(r, r.scope().op("Digamma", {r.input(0)}));
  });
  table.add("Digamma", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output slope = s.op("Polygamma", {1, at_least_float(s, r.input(0))});
    set_special_slope(r, as_type(s, slope, r.input_dtype(0)));
  });
  table.add("Polygamma", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(0)) return r.fail("its derivative by the order is not known");
    const Output next = ops::add(s, r.input(0), 1);
    set_special_slope(r, 1, s.op("Polygamma", {next, r.input(1)}));
  });
  table.add("Zeta", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(0)) return r.fail("its derivative by x is not known");
    const Output x = r.input(0);
    const Output next = s.op("Zeta", {ops::add(s, x, 1), r.input(1)});
    set_special_slope(r, 1, ops::neg(s, ops::mul(s, x, next)));
  });
  table.add("Igamma", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output a = r.input(0), x = r.input(1);
    if (r.wants(0)) set_special_slope(r, 0, s.op("IgammaGradA", {a, x}));
    if (r.wants(1)) set_special_slope(r, 1, gamma_density(s, a, x));
  });
  table.add("Igammac", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output a = r.input(0), x = r.input(1);
    if (r.wants(0))
      set_special_slope(r, 0, ops::neg(s, s.op("IgammaGradA", {a, x})));
    if (r.wants(1))
      set_special_slope(r, 1, ops::neg(s, gamma_density(s, a, x)));
  });
  table.add("IgammaGradA", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(0)) return r.fail("its derivative by a is not known");
    const Output a = r.input(0), x = r.input(1);
    set_special_slope(r, 1,
                      density_slope_by_a(s, a, x, gamma_density(s, a, x)));
  });
  table.add("_GammaDensity", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output a = r.input(0), x = r.input(1), z = r.output();
    if (r.wants(0)) set_special_slope(r, 0, density_slope_by_a(s, a, x, z));
    if (r.wants(1)) set_special_slope(r, 1, density_slope_by_x(s, a, x, z));
  });
  table.add("RandomGammaGrad", gamma_sample_grad_rule);
}

// --- Bessel functions -------------------------------------------------------

// f(x) / x for a function of order 1, which is 1/2 in the limit at 0.
Output over_x(const Scope& s, const Output& f, const Output& x) {
  const Output is_zero = ops::equal(s, x, 0);
  const Output divisor = ops::select(s, is_zero, 1, x);
  return ops::select(s, is_zero, 0.5, ops::real_div(s, f, divisor));
}

Output special(RuleContext& r, std::string_view op) {
  return r.scope().op(op, {r.input(0)});
}

// I0' = I1, I1' = I0 - I1/x; times e^-|x| for those that end in e.
void add_bessel_i_rules(RuleTable& table) {
  table.add("BesselI0", [](RuleContext& r) {
    set_special_slope(r, special(r, "BesselI1"));
  });
  table.add("BesselI0e", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output decay = ops::mul(s, r.output(), ops::sign(s, r.input(0)));
    set_special_slope(r, ops::sub(s, special(r, "BesselI1e"), decay));
  });
  table.add("BesselI1", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = over_x(s, r.output(), r.input(0));
    set_special_slope(r, ops::sub(s, special(r, "BesselI0"), ratio));
  });
  table.add("BesselI1e", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output x = r.input(0), y = r.output();
    const Output decay =
        ops::add(s, ops::mul(s, y, ops::sign(s, x)), over_x(s, y, x));
    set_special_slope(r, ops::sub(s, special(r, "BesselI0e"), decay));
  });
}

// K0' = -K1, K1' = -K0 - K1/x; times e^x for those that end in e.
void add_bessel_k_rules(RuleTable& table) {
  table.add("BesselK0", [](RuleContext& r) {
    set_special_slope(r, ops::neg(r.scope(), special(r, "BesselK1")));
  });
  table.add("BesselK0e", [](RuleContext& r) {
    const Output k1e = special(r, "BesselK1e");
    set_special_slope(r, ops::sub(r.scope(), r.output(), k1e));
  });
  table.add("BesselK1", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = ops::real_div(s, r.output(), r.input(0));
    const Output k0 = special(r, "BesselK0");
    set_special_slope(r, ops::neg(s, ops::add(s, k0, ratio)));
  });
  table.add("BesselK1e", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = ops::real_div(s, r.output(), r.input(0));
    const Output growth = ops::sub(s, r.output(), special(r, "BesselK0e"));
    set_special_slope(r, ops::sub(s, growth, ratio));
  });
}

// J0' = -J1, J1' = J0 - J1/x, and the same of Y.
void add_bessel_jy_rules(RuleTable& table) {
  table.add("BesselJ0", [](RuleContext& r) {
    set_special_slope(r, ops::neg(r.scope(), special(r, "BesselJ1")));
  });
  table.add("BesselJ1", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = over_x(s, r.output(), r.input(0));
    set_special_slope(r, ops::sub(s, special(r, "BesselJ0"), ratio));
  });
  table.add("BesselY0", [](RuleContext& r) {
    set_special_slope(r, ops::neg(r.scope(), special(r, "BesselY1")));
  });
  table.add("BesselY1", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = ops::real_div(s, r.output(), r.input(0));
    set_special_slope(r, ops::sub(s, special(r, "BesselY0"), ratio));
  });
}

}  // namespace

void add_special_rules(RuleTable& table) {
  add_error_function_rules(table);
  add_gamma_rules(table);
  add_bessel_i_rules(table);
  add_bessel_k_rules(table);
  add_bessel_jy_rules(table);
  table.add_forward({"Erf", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma"},
                    symmetric);
}

}  // namespace tagflow::autodiff
