// Cumulative sums, products and logarithms of sums along one dimension.
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/reduction_rules.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {
namespace {

ops::ScanAttrs scan_attrs(RuleContext& r) {
  return {r.attr<bool>("exclusive"), r.attr<bool>("reverse")};
}

// An element contributes to the results after it.
ops::ScanAttrs backwards(const ops::ScanAttrs& attrs) {
  return {attrs.exclusive, !attrs.reverse};
}

// --- Products ---------------------------------------------------------------

// With y_i the product of the x_j up to i, the gradient of x_k is the sum over
// i from k on of g_i y_i / x_k, where x_k is not zero. For a zero it is the sum
// of g_i times the product without x_k. Along one row, in the scan's direction:
//
//   the first zero    that is the scan of x with this zero replaced by 1.
//   the n-th          the zeros before it, times the scan with these and itself
//                     replaced. It is zero, but written out up to the fourth,
//                     so that all gradients are right up to the fourth.
//   further ones      zero, and so are three derivatives of that.
void cumprod_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const ops::ScanAttrs attrs = scan_attrs(r);
  const Output x = r.conj(r.input(0)), axis = r.input(1);
  const auto grads_times = [&](const Output& products) {
    return ops::cumsum(s, ops::mul(s, r.grad(), products), axis,
                       backwards(attrs));
  };
  const auto without = [&](const Output& zeros) -> Output {
    return s.op("Cumprod", {ops::select(s, zeros, 1, x), axis},
                {{"exclusive", attrs.exclusive}, {"reverse", attrs.reverse}});
  };
  const Output is_zero = ops::equal(s, x, 0);
  const Output number =
      ops::cumsum(s, ops::cast(s, is_zero, DataType::kInt32), axis,
                  {.exclusive = false, .reverse = attrs.reverse});
  Output at_zero, before;
  for (int n = 1; n <= 4; ++n) {
    const Output is_nth =
        ops::logical_and(s, is_zero, ops::equal(s, number, n));
    const Output up_to_nth =
        ops::logical_and(s, is_zero, ops::less_equal(s, number, n));
    const Output part = grads_times(without(up_to_nth));
    at_zero = n == 1
                  ? part
                  : ops::select(s, is_nth, ops::mul(s, before, part), at_zero);
    const Output nth =
        ops::reduce_sum(s, ops::select(s, is_nth, x, 0), axis, {true});
    before = n == 1 ? nth : ops::mul(s, before, nth);
  }
  at_zero = ops::select(s, ops::less_equal(s, number, 4), at_zero, 0);
  const Output elsewhere = ops::real_div(s, grads_times(r.conj(r.output())),
                                         ops::select(s, is_zero, 1, x));
  r.set(0, ops::select(s, is_zero, at_zero, elsewhere));
}

// --- Logarithms of sums -----------------------------------------------------

// Note [Weighted scans]
// With y = CumulativeLogsumexp(x), the gradient of x_k is
//   u_k = e^(p_k) (sum of v_i e^(q_i) over i from k on)
// for v = g, p = x, q = -y. Its factors may overflow or underflow where u_k
// does not, so it is computed in logarithms, separately for positive and
// negative v. This cannot be differentiated if v is 0. But the gradients of
// u are like u itself, with h the gradient of u:
//   of v: e^(q_i) (sum of h_k e^(p_k) over k up to i),
//   of p: h u,  of q: v times that of v.
// So u passes an IdentityN, with v, p and q as further inputs, which has this
// for its custom gradient.
constexpr char kWeightedScan[] = "tagflow.WeightedScan";

// e^p times the scan of v e^q, for v >= 0.
Output positive_weighted_scan(const Scope& s, const Output& v, const Output& p,
                              const Output& q, const Output& axis,
                              const ops::ScanAttrs& attrs) {
  const Output sums =
      s.op("CumulativeLogsumexp", {ops::add(s, ops::log(s, v), q), axis},
           {{"exclusive", attrs.exclusive}, {"reverse", attrs.reverse}});
  return ops::exp(s, ops::add(s, p, sums));
}

Output weighted_scan(const Scope& s, const Output& v, const Output& p,
                     const Output& q, const Output& axis,
                     const ops::ScanAttrs& attrs) {
  const Output gains =
      positive_weighted_scan(s, ops::maximum(s, v, 0), p, q, axis, attrs);
  const Output losses = positive_weighted_scan(
      s, ops::maximum(s, ops::neg(s, v), 0), p, q, axis, attrs);
  return s.op("IdentityN", {ops::sub(s, gains, losses), v, p, q, axis},
              {{"_gradient_op_type", kWeightedScan},
               {"_exclusive", attrs.exclusive},
               {"_reverse", attrs.reverse}});
}

void weighted_scan_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output h = r.grad(), axis = r.input(4);
  const ops::ScanAttrs attrs = {r.attr<bool>("_exclusive"),
                                r.attr<bool>("_reverse")};
  if (r.wants(1) || r.wants(3)) {
    const Output by_v =
        weighted_scan(s, h, r.input(3), r.input(2), axis, backwards(attrs));
    r.set(1, by_v);
    if (r.wants(3)) r.set(3, ops::mul(s, r.input(1), by_v));
  }
  if (r.wants(2)) r.set(2, ops::mul(s, h, r.output()));
}

void cumulative_logsumexp_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output y = r.output();
  // An empty sum contributes nothing to later results.
  const Output sums = ops::select(s, ops::is_finite(s, y), y, 0);
  r.set(0, weighted_scan(s, r.grad(), r.input(0), ops::neg(s, sums), r.input(1),
                         backwards(scan_attrs(r))));
}

}  // namespace

void add_reduction_scan_rules(RuleTable& table) {
  table.add("Cumsum", [](RuleContext& r) {
    r.set(0, ops::cumsum(r.scope(), r.grad(), r.input(1),
                         backwards(scan_attrs(r))));
  });
  table.add("Cumprod", cumprod_rule);
  table.add("CumulativeLogsumexp", cumulative_logsumexp_rule);
  table.add_custom(kWeightedScan, weighted_scan_rule);
  table.add_forward({"Cumsum"}, linear<0>);
}

}  // namespace tagflow::autodiff
