#include "autodiff/rules/linalg_matrices.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

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
