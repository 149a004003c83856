#include "autodiff/train/clip.h"

#include "autodiff/sum.h"
#include "autodiff/train/values.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Input;
using graph::Scope;
using graph::ScopeAccess;

namespace {

std::vector<Gradient> all_unique(const Scope& s,
                                 std::vector<Gradient> gradients) {
  for (Gradient& gradient : gradients)
    if (gradient.valid()) gradient = with_unique_rows(s, gradient);
  return gradients;
}

// The sum of squares of a gradient with unique rows.
Output squares_of(const Scope& s, const Gradient& gradient, DataType dtype) {
  const Output values = typed_value(s, gradient.values, dtype, "values");
  return ops::reduce_sum(s, ops::square(s, values));
}

// The root, whose slope at 0 is 0 in place of infinity.
Output root_of(const Scope& s, const Output& sum) {
  const Output is_more = ops::greater(s, sum, 0);
  const Output safe = ops::select(s, is_more, sum, 1);
  return ops::select(s, is_more, ops::sqrt(s, safe), sum);
}

// limit / max(norm, limit). The subtraction makes it NaN if the norm is not
// finite: otherwise gradients would silently become 0.
Output factor_of(const Scope& s, const Output& norm, const Input& limit) {
  const Output most = typed_value(s, limit, norm.dtype(), "limit");
  const Output factor = ops::real_div(s, most, ops::maximum(s, norm, most));
  return ops::add(s, factor, ops::sub(s, norm, norm));
}

Gradient scaled_by(const Scope& s, const Gradient& gradient,
                   const Output& factor) {
  const Output typed =
      typed_value(s, factor, gradient.values.dtype(), "factor");
  return {ops::mul(s, gradient.values, typed), gradient.indices};
}

Output norm_of_all(const Scope& s, const std::vector<Gradient>& unique) {
  DataType dtype = DataType::kFloat;
  for (const Gradient& gradient : unique)
    if (gradient.values.dtype() == DataType::kDouble) dtype = DataType::kDouble;
  std::vector<Output> sums;
  for (const Gradient& gradient : unique)
    if (gradient.valid()) sums.push_back(squares_of(s, gradient, dtype));
  if (sums.empty()) return s.resolve(0, dtype, "norm");
  return root_of(s, sum_of(s, std::move(sums)));
}

}  // namespace

std::vector<Gradient> clip_by_value(const Scope& s,
                                    const std::vector<Gradient>& gradients,
                                    const Input& low, const Input& high) {
  const Scope in = ScopeAccess::construct_scope(s, "clip_by_value");
  std::vector<Gradient> clipped = all_unique(in, gradients);
  for (Gradient& gradient : clipped) {
    if (!gradient.valid()) continue;
    const DataType dtype = gradient.values.dtype();
    gradient.values = ops::clip_by_value(in, gradient.values,
                                         typed_value(in, low, dtype, "low"),
                                         typed_value(in, high, dtype, "high"));
  }
  return clipped;
}

std::vector<Gradient> clip_by_norm(const Scope& s,
                                   const std::vector<Gradient>& gradients,
                                   const Input& limit) {
  const Scope in = ScopeAccess::construct_scope(s, "clip_by_norm");
  std::vector<Gradient> clipped = all_unique(in, gradients);
  for (Gradient& gradient : clipped) {
    if (!gradient.valid()) continue;
    const DataType dtype = sum_type(gradient.values.dtype());
    const Output norm = root_of(in, squares_of(in, gradient, dtype));
    gradient = scaled_by(in, gradient, factor_of(in, norm, limit));
  }
  return clipped;
}

Output global_norm(const Scope& s, const std::vector<Gradient>& gradients) {
  const Scope in = ScopeAccess::construct_scope(s, "global_norm");
  return norm_of_all(in, all_unique(in, gradients));
}

ClippedGradients clip_by_global_norm(const Scope& s,
                                     const std::vector<Gradient>& gradients,
                                     const Input& limit) {
  const Scope in = ScopeAccess::construct_scope(s, "clip_by_global_norm");
  ClippedGradients clipped{all_unique(in, gradients), {}};
  clipped.norm = norm_of_all(in, clipped.gradients);
  const Output factor = factor_of(in, clipped.norm, limit);
  for (Gradient& gradient : clipped.gradients)
    if (gradient.valid()) gradient = scaled_by(in, gradient, factor);
  return clipped;
}

GradientTransform clipping_to(const Input& limit) {
  return [limit](const Scope& s, const std::vector<Gradient>& gradients) {
    return clip_by_global_norm(s, gradients, limit).gradients;
  };
}

}  // namespace tagflow::autodiff
