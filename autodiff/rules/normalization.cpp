// Normalisations.
#include "autodiff/rule.h"
#include "autodiff/rules/attributes.h"
#include "autodiff/rules/normalization_batch_norm.h"
#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// --- LRN --------------------------------------------------------------------

// Note [Local response normalisation]
// y = x n^-beta with n = bias + alpha W(x^2), where W sums each element and its
// neighbours among the channels: a symmetric matrix of ones near the diagonal.
// The gradient op is, with q = x n^(-beta-1),
//
//   dx = n^-beta dy - 2 alpha beta x W(q dy)
//
// It reads y, too, but is differentiated here as a function of x and dy. From a
// gradient a of dx come, with u = W(a x),
//
//   of dy  n^-beta a - 2 alpha beta q u
//   of x   -2 alpha beta (x W(n^(-beta-1) a dy) + a W(q dy) + n^(-beta-1) dy u
//                         - 2 alpha (beta + 1) x W(q dy u / n))
void lrn_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const double alpha = r.attr<float>("alpha");
  const double beta = r.attr<float>("beta");
  const Output dy = r.input(0), x = r.input(1), a = r.grad();
  const Output channels =
      ops::slice(s, r.input_shape(1), r.ints({3}), r.ints({1}));
  const Output ones =
      ops::fill(s, ops::concat(s, {channels, channels}, 0), r.scalar(1, a));
  // The band of a matrix is not wider than the matrix.
  const Output size = ops::reshape(s, channels, r.ints({}));
  const Output radius = ops::minimum(s, ops::cast(s, size, DataType::kInt64),
                                     r.attr<int64_t>("depth_radius"));
  const Output near = s.op("MatrixBandPart", {ones, radius, radius});
  const auto window = [&](const Output& of) {
    return ops::batch_matmul(s, of, near);
  };
  const auto times = [&](const Output& p, const Output& q) {
    return ops::mul(s, p, q);
  };
  const Output n =
      ops::add(s, times(r.scalar(alpha, a), window(ops::square(s, x))),
               double(r.attr<float>("bias")));
  const Output power = ops::pow(s, n, r.scalar(-beta - 1, a));
  const Output q = times(x, power);
  const Output u = window(times(a, x));
  const Output factor = r.scalar(-2 * alpha * beta, a);
  if (r.wants(0))
    r.set(0,
          ops::add(s, times(times(n, power), a), times(factor, times(q, u))));
  if (!r.wants(1)) return;
  const Output q_dy = times(q, dy);
  const Output by_power = times(times(r.scalar(-2 * alpha * (beta + 1), a), x),
                                window(ops::real_div(s, times(q_dy, u), n)));
  const Output parts = ops::add_n(
      s, {times(x, window(times(power, times(a, dy)))), times(a, window(q_dy)),
          times(power, times(dy, u)), by_power});
  r.set(1, times(factor, parts));
}

void add_lrn_rules(RuleTable& table) {
  table.add("LRN", [](RuleContext& r) {
    constexpr std::string_view kAttrs[] = {"depth_radius", "bias", "alpha",
                                           "beta"};
    r.set(0, r.scope().op("LRNGrad", {r.grad(), r.input(0), r.output()},
                          copied_attrs(r.node(), kAttrs)));
  });
  table.add("LRNGrad", lrn_grad_rule);
}

}  // namespace

void add_normalization_rules(RuleTable& table) {
  add_batch_norm_rules(table);
  add_batch_norm_grad_rules(table);
  add_lrn_rules(table);
}

}  // namespace tagflow::autodiff
