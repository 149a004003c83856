// Complex numbers: parts, conjugates, and putting them together. The gradient
// of a real L by a complex z is dL/dRe(z) + i dL/dIm(z).
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/elementwise_rules.h"
#include "autodiff/rules/forward.h"

namespace tagflow::autodiff {
namespace {

// i g, of a real g.
Output times_i(RuleContext& r, const Output& g) {
  return r.scope().op("Complex", {0, g}, {{"Tout", r.input_dtype(0)}});
}

}  // namespace

void add_elementwise_complex_rules(RuleTable& table) {
  table.add("Real", [](RuleContext& r) {
    r.set(0, ops::cast(r.scope(), r.grad(), r.input_dtype(0)));
  });
  table.add("Imag", [](RuleContext& r) { r.set(0, times_i(r, r.grad())); });
  table.add("Conj", [](RuleContext& r) { r.set(0, r.conj(r.grad())); });
  table.add("Complex", [](RuleContext& r) {
    const Scope& s = r.scope();
    const DataType part = r.input_dtype(0);
    if (r.wants(0))
      r.set_broadcast(0, s.op("Real", {r.grad()}, {{"Tout", part}}));
    if (r.wants(1))
      r.set_broadcast(1, s.op("Imag", {r.grad()}, {{"Tout", part}}));
  });
  // x / |x|, and 0 at 0.
  table.add("ComplexAbs", [](RuleContext& r) {
    const Scope& s = r.scope();
    const DataType dtype = r.input_dtype(0);
    const Output direction =
        ops::div_no_nan(s, r.input(0), ops::cast(s, r.output(), dtype));
    r.set(0, ops::mul(s, ops::cast(s, r.grad(), dtype), direction));
  });
  // The imaginary part of log(x): i g / conj(x).
  table.add("Angle", [](RuleContext& r) {
    r.set(0,
          ops::real_div(r.scope(), times_i(r, r.grad()), r.conj(r.input(0))));
  });
  table.add_forward({"Conj", "Real", "Imag"}, linear<0>);
  table.add_forward({"Complex"}, linear<0, 1>);
}

}  // namespace tagflow::autodiff
