#include "autodiff/rules/linalg_matrices.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_nn.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

bool keeps_shape(const PartialShape& own, const PartialShape& other) {
  if (!own.has_rank() || !other.has_rank() || own.rank() < other.rank())
    return false;
  const int more = own.rank() - other.rank();
  for (int i = more; i < own.rank(); ++i) {
    const bool is_one = own.dim(i) == 1 && other.dim(i - more) == 1;
    if (!own.dim_known(i) || (own.dim(i) == 1 && !is_one)) return false;
  }
  return true;
}

namespace {

PartialShape without_matrix(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return PartialShape();
  return PartialShape(shape.dims().first(size_t(shape.rank() - 2)));
}

}  // namespace

void set_batch_broadcast(RuleContext& r, int input, const Output& gradient) {
  if (!r.wants(input)) return;
  if (keeps_shape(without_matrix(r.known_input_shape(input)),
                  without_matrix(r.known_input_shape(1 - input))))
    return r.set(input, gradient);
  const Scope& s = r.scope();
  const auto batch = [&](int i) {
    return ops::strided_slice(s, r.input_shape(i), r.ints({0}), r.ints({-2}),
                              r.ints({1}));
  };
  const Output axes =
      ops::broadcast_gradient_args(s, batch(input), batch(1 - input)).r0;
  r.set(input, ops::reshape(s, ops::reduce_sum(s, gradient, axes),
                            r.input_shape(input)));
}

Output product(const RuleContext& r, const Output& a, const Output& b,
               Adjoints adjoints) {
  return ops::batch_matmul(r.scope(), a, b, {adjoints.of_a, adjoints.of_b});
}

Output plus(const RuleContext& r, const Output& a, const Output& b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  return ops::add(r.scope(), a, b);
}

Output adjoint(const RuleContext& r, const Output& x) {
  return r.conj(r.scope().op("Einsum", {x}, {{"equation", "...ij->...ji"}}));
}

Output matrix_band(const RuleContext& r, const Output& x, int64_t lower,
                   int64_t upper) {
  return r.scope().op("MatrixBandPart", {x, lower, upper});
}

Output lower_triangle(const RuleContext& r, const Output& x) {
  return matrix_band(r, x, -1, 0);
}

Output upper_triangle(const RuleContext& r, const Output& x) {
  return matrix_band(r, x, 0, -1);
}

Output halved_lower_triangle(const RuleContext& r, const Output& x) {
  const Scope& s = r.scope();
  return ops::sub(s, lower_triangle(r, x),
                  ops::mul(s, matrix_band(r, x, 0, 0), 0.5));
}

Output solve_triangular(const RuleContext& r, const Output& a, const Output& b,
                        Triangle triangle) {
  return r.scope().op(
      "MatrixTriangularSolve", {a, b},
      {{"lower", triangle.lower}, {"adjoint", triangle.adjoint}});
}

Output scale_columns(const RuleContext& r, const Output& x, const Output& by) {
  const Scope& s = r.scope();
  return ops::mul(s, x, ops::expand_dims(s, by, -2));
}

Output scale_rows(const RuleContext& r, const Output& x, const Output& by) {
  const Scope& s = r.scope();
  return ops::mul(s, x, ops::expand_dims(s, by, -1));
}

}  // namespace tagflow::autodiff
