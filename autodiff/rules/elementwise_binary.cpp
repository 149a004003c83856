// Element-wise ops of two tensors, sums of several, and choices between two.
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/elementwise_rules.h"
#include "autodiff/rules/forward.h"
#include "autodiff/sum.h"

namespace tagflow::autodiff {
namespace {

// Of x f(y), which counts as 0 where x is 0: 1 where it has the derivative f(y)
// by x, else 0. It has none where x is 0 and f(y) is not finite.
Output has_slope(const Scope& s, const Output& x, const Output& slope) {
  const DataType dtype = slope.dtype();
  // An infinite or undefined number times 0 is not 0.
  const Output is_finite = ops::equal(s, ops::mul(s, slope, 0), 0);
  const Output is_regular =
      ops::logical_or(s, ops::not_equal(s, x, 0), is_finite);
  return ops::cast(s, is_regular, dtype);
}

// For an op whose derivative by the input is `slope`.
void set_broadcast_slope(RuleContext& r, int input, const Output& slope) {
  r.set_broadcast(input, ops::mul(r.scope(), r.grad(), r.conj(slope)));
}

// Another op, applied to the node's own inputs.
Output forward_of_inputs(RuleContext& r, std::string_view op) {
  const auto inputs = r.node().inputs();
  return r.forward(op, {inputs.begin(), inputs.end()});
}

// --- Sums -------------------------------------------------------------------

void add_sum_rules(RuleTable& table) {
  table.add({"Add", "AddV2"}, [](RuleContext& r) {
    r.set_broadcast(0, r.grad());
    r.set_broadcast(1, r.grad());
  });
  table.add("Sub", [](RuleContext& r) {
    r.set_broadcast(0, r.grad());
    if (r.wants(1)) r.set_broadcast(1, ops::neg(r.scope(), r.grad()));
  });
  // For tensors of one shape; gradients that are sparse, or of containers, stay
  // so.
  table.add({"AddN", "AccumulateNV2"}, [](RuleContext& r) {
    for (int i = 0; i < r.num_inputs(); ++i) r.set(i, r.slices());
  });
  // |x - y|^2.
  table.add("SquaredDifference", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output difference = ops::sub(s, r.input(0), r.input(1));
    const Output grad =
        ops::mul(s, real_part(s, r.grad()), ops::mul(s, difference, 2));
    r.set_broadcast(0, grad);
    if (r.wants(1)) r.set_broadcast(1, ops::neg(s, grad));
  });
}

// --- Products and quotients -------------------------------------------------

// g / y, and -(g / y) x / y; `op` divides.
void quotient_rule(RuleContext& r, std::string_view op) {
  const Scope& s = r.scope();
  const Output ratio = s.op(op, {r.grad(), r.conj(r.input(1))});
  r.set_broadcast(0, ratio);
  if (!r.wants(1)) return;
  r.set_broadcast(1, ops::neg(s, ops::mul(s, ratio, r.conj(r.output()))));
}

void add_factor_rules(RuleTable& table) {
  table.add("Mul", [](RuleContext& r) {
    if (r.wants(0)) set_broadcast_slope(r, 0, r.input(1));
    if (r.wants(1)) set_broadcast_slope(r, 1, r.input(0));
  });
  // 0 where y is 0. The derivative by y is x there, too; it must not turn a
  // gradient of 0 into NaN.
  table.add("MulNoNan", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(0))
      r.set_broadcast(0, s.op("MulNoNan", {r.grad(), r.conj(r.input(1))}));
    if (r.wants(1))
      r.set_broadcast(1, s.op("MulNoNan", {r.conj(r.input(0)), r.grad()}));
  });
  table.add({"RealDiv", "Div"},
            [](RuleContext& r) { quotient_rule(r, "RealDiv"); });
  table.add("DivNoNan", [](RuleContext& r) { quotient_rule(r, "DivNoNan"); });
}

// x - y floor(x / y), and the same truncated.
void add_remainder_rules(RuleTable& table) {
  table.add_none({"FloorDiv", "TruncateDiv"},
                 "its result is constant but for jumps");
  table.add("FloorMod", [](RuleContext& r) {
    r.set_broadcast(0, r.grad());
    if (r.wants(1))
      set_broadcast_slope(
          r, 1, ops::neg(r.scope(), forward_of_inputs(r, "FloorDiv")));
  });
  table.add({"Mod", "TruncateMod"}, [](RuleContext& r) {
    r.set_broadcast(0, r.grad());
    if (r.wants(1))
      set_broadcast_slope(
          r, 1, ops::neg(r.scope(), forward_of_inputs(r, "TruncateDiv")));
  });
}

// --- Powers and logarithms --------------------------------------------------

void pow_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0)) {
    // 0 where y is 0, though 0^(y-1) is infinite, and where the gradient is 0,
    // as after a factor of 0 at a lower order. A known y is not a special case,
    // since a further gradient may be by y.
    const Output y = r.input(1);
    const Output power = ops::pow(s, r.input(0), ops::sub(s, y, 1));
    const Output slope = s.op("MulNoNan", {power, y});
    r.set_broadcast(0, s.op("MulNoNan", {r.conj(slope), r.grad()}));
  }
  if (!r.wants(1)) return;
  // Powers of bases without a logarithm count as constant.
  const Output x = r.input(0);
  const Output has_log =
      is_complex(x.dtype()) ? ops::not_equal(s, x, 0) : ops::greater(s, x, 0);
  const Output log = ops::log(s, ops::select(s, has_log, x, 1));
  set_broadcast_slope(r, 1, ops::mul(s, r.output(), log));
}

// Each is 0 where x is 0. It counts as constant in x where y is singular there.
void add_logarithm_rules(RuleTable& table) {
  table.add("Pow", pow_rule);
  table.add("Xlogy", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output x = r.input(0), y = r.input(1);
    if (r.wants(0))
      set_broadcast_slope(r, 0,
                          s.op("Xlogy", {has_slope(s, x, ops::log(s, y)), y}));
    if (r.wants(1)) set_broadcast_slope(r, 1, s.op("Xdivy", {x, y}));
  });
  table.add("Xlog1py", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output x = r.input(0), y = r.input(1);
    if (r.wants(0))
      set_broadcast_slope(
          r, 0, s.op("Xlog1py", {has_slope(s, x, s.op("Log1p", {y})), y}));
    if (r.wants(1))
      set_broadcast_slope(r, 1, s.op("Xdivy", {x, ops::add(s, y, 1)}));
  });
  table.add("Xdivy", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output x = r.input(0), y = r.input(1);
    if (r.wants(0))
      set_broadcast_slope(
          r, 0, s.op("Xdivy", {has_slope(s, x, ops::reciprocal(s, y)), y}));
    if (r.wants(1))
      set_broadcast_slope(r, 1,
                          s.op("Xdivy", {ops::neg(s, x), ops::square(s, y)}));
  });
}

void add_plane_rules(RuleTable& table) {
  // Of y and x, in this order.
  table.add("Atan2", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output y = r.input(0), x = r.input(1);
    const Output size = ops::add(s, ops::square(s, x), ops::square(s, y));
    const Output ratio = ops::real_div(s, r.grad(), size);
    if (r.wants(0)) r.set_broadcast(0, ops::mul(s, ratio, x));
    if (r.wants(1)) r.set_broadcast(1, ops::neg(s, ops::mul(s, ratio, y)));
  });
  // The step to the next number hardly depends on x1 and x2.
  table.add("NextAfter", [](RuleContext& r) { r.set_broadcast(0, r.grad()); });
}

// --- Choices ----------------------------------------------------------------

// The gradient where the condition holds, else exact zeros; or the other way
// round.
void set_choice(RuleContext& r, const Output& condition, int if_true,
                int if_false) {
  const Scope& s = r.scope();
  if (r.wants(if_true))
    r.set_broadcast(if_true, ops::select(s, condition, r.grad(), 0));
  if (r.wants(if_false))
    r.set_broadcast(if_false, ops::select(s, condition, 0, r.grad()));
}

// Beyond a limit the derivative by x is zero, and that by the limit is one.
void clip_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (is_complex(r.input_dtype(0)))
    return r.fail("it limits the parts of complex numbers one by one");
  const Output x = r.input(0);
  const Output below = ops::less(s, x, r.input(1));
  const Output above = ops::greater(s, x, r.input(2));
  if (r.wants(0))
    r.set(0, ops::select(s, ops::logical_or(s, below, above), 0, r.grad()));
  if (r.wants(1)) r.set_broadcast(1, ops::select(s, below, r.grad(), 0));
  if (r.wants(2)) r.set_broadcast(2, ops::select(s, above, r.grad(), 0));
}

void add_choice_rules(RuleTable& table) {
  // In a loop this saves one bool for each element instead of both numbers.
  table.add("Maximum", [](RuleContext& r) {
    set_choice(r, forward_of_inputs(r, "GreaterEqual"), 0, 1);
  });
  table.add("Minimum", [](RuleContext& r) {
    set_choice(r, forward_of_inputs(r, "LessEqual"), 0, 1);
  });
  table.add("SelectV2",
            [](RuleContext& r) { set_choice(r, r.input(0), 1, 2); });
  // For tensors of one shape; the condition may select whole rows.
  table.add("Select", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output zeros = ops::zeros_like(s, r.grad());
    if (r.wants(1)) r.set(1, s.op("Select", {r.input(0), r.grad(), zeros}));
    if (r.wants(2)) r.set(2, s.op("Select", {r.input(0), zeros, r.grad()}));
  });
  table.add("ClipByValue", clip_rule);
}

// --- Forward mode -----------------------------------------------------------

void sum_of_many(ForwardContext& r) {
  std::vector<Output> terms;
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.has_tangent(i)) terms.push_back(r.tangent(i));
  r.set(0, sum_of(r.scope(), std::move(terms)));
}

void sum_of_two(ForwardContext& r) {
  // A sum of flows of TensorArrays.
  if (r.is_container(0)) return sum_of_many(r);
  if (r.has_tangent(0) && r.has_tangent(1))
    r.set_linear(std::array{0, 1});
  else if (r.has_tangent(0))
    r.set_broadcast(0, r.tangent(0));
  else if (r.node().op() == "Sub")
    r.set_broadcast(1, ops::neg(r.scope(), r.tangent(1)));
  else
    r.set_broadcast(1, r.tangent(1));
}

// (dx - (x / y) dy) / y.
void quotient(ForwardContext& r) {
  const Scope& s = r.scope();
  Output numerator;
  if (r.has_tangent(1)) numerator = ops::mul(s, r.output(), r.tangent(1));
  if (!r.has_tangent(0))
    numerator = ops::neg(s, numerator);
  else
    numerator =
        numerator.valid() ? ops::sub(s, r.tangent(0), numerator) : r.tangent(0);
  r.set(0, ops::real_div(s, numerator, r.input(1)));
}

// The tangent of the larger or smaller input, the one that gets the gradient.
void choice_of_two(ForwardContext& r, std::string_view takes_first) {
  const Scope& s = r.scope();
  const Output first = s.op(takes_first, {r.input(0), r.input(1)});
  const auto tangent = [&](int i) -> graph::Input {
    if (r.has_tangent(i)) return r.tangent(i);
    return 0;
  };
  r.set(0, ops::select(s, first, tangent(0), tangent(1)));
}

void add_binary_forward_rules(RuleTable& table) {
  table.add_forward({"Add", "AddV2", "Sub"}, sum_of_two);
  table.add_forward({"AddN", "AccumulateNV2"}, sum_of_many);
  table.add_forward({"Mul"}, multilinear<0, 1>);
  table.add_forward({"RealDiv", "Div"}, quotient);
  table.add_forward(
      {"Maximum"}, [](ForwardContext& r) { choice_of_two(r, "GreaterEqual"); });
  table.add_forward({"Minimum"},
                    [](ForwardContext& r) { choice_of_two(r, "LessEqual"); });
  table.add_forward({"Select", "SelectV2"}, linear<1, 2>);
}

}  // namespace

void add_elementwise_binary_rules(RuleTable& table) {
  add_sum_rules(table);
  add_factor_rules(table);
  add_remainder_rules(table);
  add_logarithm_rules(table);
  add_plane_rules(table);
  add_choice_rules(table);
  add_binary_forward_rules(table);
}

}  // namespace tagflow::autodiff
