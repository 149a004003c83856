// What rules of ops on matrices, the last two dimensions of tensors, share.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Whether it is known that a tensor of shape `own` keeps its shape where it is
// broadcast with one of shape `other`.
bool keeps_shape(const PartialShape& own, const PartialShape& other);

// Sets the gradient of input 0 or 1 of an op that broadcasts its inputs but for
// their last two dimensions: `gradient`, summed over the dimensions along which
// that input was repeated.
void set_batch_broadcast(RuleContext& r, int input, const Output& gradient);

// a b, each of them read as its adjoint where that is said.
struct Adjoints {
  bool of_a = false;
  bool of_b = false;
};
Output product(const RuleContext& r, const Output& a, const Output& b,
               Adjoints adjoints = {});
// a + b, each of which may be invalid: then it is zero.
Output plus(const RuleContext& r, const Output& a, const Output& b);
// The conjugate transposes.
Output adjoint(const RuleContext& r, const Output& x);

// The elements from `lower` diagonals below the main one to `upper` above it;
// negative numbers mean all.
Output matrix_band(const RuleContext& r, const Output& x, int64_t lower,
                   int64_t upper);
Output lower_triangle(const RuleContext& r, const Output& x);
Output upper_triangle(const RuleContext& r, const Output& x);
// The lower triangle, its diagonal halved: of a matrix to which its adjoint is
// added afterwards, or was added before, what counts once.
Output halved_lower_triangle(const RuleContext& r, const Output& x);

// X of A X = b for a triangular A, or of A^H X = b.
struct Triangle {
  bool lower = true;
  bool adjoint = false;
};
Output solve_triangular(const RuleContext& r, const Output& a, const Output& b,
                        Triangle triangle);

// Matrices times diagonal ones, given as vectors: scales their columns.
Output scale_columns(const RuleContext& r, const Output& x, const Output& by);
Output scale_rows(const RuleContext& r, const Output& x, const Output& by);

}  // namespace tagflow::autodiff
