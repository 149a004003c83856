// Helpers that rules of linear algebra share. Matrices are the last two
// dimensions of tensors.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// a b, or with the adjoints of a and b.
struct Adjoints {
  bool of_a = false;
  bool of_b = false;
};
Output product(const RuleContext& r, const Output& a, const Output& b,
               Adjoints adjoints = {});
// a + b, where an invalid Output counts as zero.
Output plus(const RuleContext& r, const Output& a, const Output& b);
// The conjugate transpose of each matrix.
Output adjoint(const RuleContext& r, const Output& x);

// The elements from `lower` diagonals below the main one to `upper` above it;
// negative numbers mean all.
Output matrix_band(const RuleContext& r, const Output& x, int64_t lower,
                   int64_t upper);
Output lower_triangle(const RuleContext& r, const Output& x);
Output upper_triangle(const RuleContext& r, const Output& x);
// The lower triangle with its diagonal halved, for a matrix to which its
// adjoint is added before or afterwards: so the diagonal counts once.
Output halved_lower_triangle(const RuleContext& r, const Output& x);

// The solution X of A X = b for a triangular A, or of A^H X = b.
struct Triangle {
  bool lower = true;
  bool adjoint = false;
};
Output solve_triangular(const RuleContext& r, const Output& a, const Output& b,
                        Triangle triangle);

// Products of matrices with diagonal ones, given as vectors.
Output scale_columns(const RuleContext& r, const Output& x, const Output& by);
Output scale_rows(const RuleContext& r, const Output& x, const Output& by);

}  // namespace tagflow::autodiff
