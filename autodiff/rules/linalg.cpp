// Linear algebra: inverses, determinants, linear systems, Cholesky, products of
// vectors in space.
#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/linalg_decompositions.h"
#include "autodiff/rules/linalg_matrices.h"

namespace tagflow::autodiff {
namespace {

// Most formulas are in: M. Giles, "An extended collection of matrix derivative
// results for forward and reverse mode algorithmic differentiation", 2008. For
// complex matrices the adjoint takes the place of the transpose.

Output inverse_adjoint(const RuleContext& r, const Output& a) {
  return r.scope().op("MatrixInverse", {a}, {{"adjoint", true}});
}

// --- Inverses and determinants ----------------------------------------------

// With y the inverse: -y^H g y^H, and of the adjoint's inverse -y g^H y.
void matrix_inverse_rule(RuleContext& r) {
  const Output y = r.output();
  const bool adjoint = r.attr<bool>("adjoint");
  const Output right =
      product(r, r.grad(), y, {.of_a = adjoint, .of_b = !adjoint});
  r.set(0, ops::neg(r.scope(), product(r, y, right, {.of_a = !adjoint})));
}

// For each matrix x: its number in `factors`, times x^-H.
void set_inverse_adjoint(RuleContext& r, const Output& factors) {
  const Scope& s = r.scope();
  const Output numbers =
      ops::expand_dims(s, ops::expand_dims(s, factors, -1), -1);
  r.set(0, ops::mul(s, numbers, inverse_adjoint(r, r.input(0))));
}

void determinant_rule(RuleContext& r) {
  set_inverse_adjoint(r, ops::mul(r.scope(), r.grad(), r.conj(r.output())));
}

// With t = tr(x^-1 dx), log|det| changes by Re(t), and the sign, a complex
// number of absolute value 1, by i Im(t) sign. So the gradient g of the first
// contributes its real part, and that of the sign, h, -i Im(conj(h) sign). A
// real sign is constant.
void log_determinant_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (!is_complex(r.input_dtype(0))) {
    if (r.has_grad(1)) set_inverse_adjoint(r, r.grad(1));
    return;
  }
  Output factors;
  if (r.has_grad(1)) factors = real_part(s, r.grad(1));
  if (r.has_grad(0)) {
    const Output turn = ops::mul(s, r.conj(r.grad(0)), r.output(0));
    const Output imaginary = ops::sub(s, real_part(s, turn), turn);
    factors = plus(r, factors, imaginary);
  }
  set_inverse_adjoint(r, factors);
}

// --- Linear systems ---------------------------------------------------------

// Of A X = B, where `of_b` is the gradient of B; or of A^H X = B.
Output gradient_of_matrix(RuleContext& r, const Output& of_b, bool adjoint) {
  const Output x = r.output();
  const Output outer = adjoint ? product(r, x, of_b, {.of_b = true})
                               : product(r, of_b, x, {.of_b = true});
  return ops::neg(r.scope(), outer);
}

void matrix_solve_rule(RuleContext& r) {
  const bool adjoint = r.attr<bool>("adjoint");
  const Output of_b = r.scope().op("MatrixSolve", {r.input(0), r.grad()},
                                   {{"adjoint", !adjoint}});
  r.set(1, of_b);
  if (r.wants(0)) r.set(0, gradient_of_matrix(r, of_b, adjoint));
}

// The other triangle is not read.
void triangular_solve_rule(RuleContext& r) {
  const bool adjoint = r.attr<bool>("adjoint");
  const bool lower = r.attr<bool>("lower");
  const Output of_b =
      solve_triangular(r, r.input(0), r.grad(), {lower, !adjoint});
  set_batch_broadcast(r, 1, of_b);
  if (!r.wants(0)) return;
  const Output of_a = gradient_of_matrix(r, of_b, adjoint);
  set_batch_broadcast(
      r, 0, lower ? lower_triangle(r, of_a) : upper_triangle(r, of_a));
}

// --- Cholesky ---------------------------------------------------------------

// l^-H p l^-1.
Output between_inverses(RuleContext& r, const Output& l, const Output& p) {
  constexpr Triangle kAdjoint = {.lower = true, .adjoint = true};
  const Output left = solve_triangular(r, l, p, kAdjoint);
  return adjoint(r, solve_triangular(r, l, adjoint(r, left), kAdjoint));
}

Output symmetric_part(RuleContext& r, const Output& x) {
  const Scope& s = r.scope();
  return ops::mul(s, ops::add(s, x, adjoint(r, x)), 0.5);
}

// I. Murray, "Differentiation of the Cholesky decomposition", 2016, section
// 3.3. As in TensorFlow, a gradient is symmetric though one triangle is read.
void cholesky_rule(RuleContext& r) {
  const Output l = r.output();
  const Output p =
      halved_lower_triangle(r, product(r, l, r.grad(), {.of_a = true}));
  r.set(0, symmetric_part(r, between_inverses(r, l, p)));
}

// The op does the same: with h(x) the lower triangle with half its diagonal,
// and t the lower triangle of dy, it is the symmetric part of l^-T p l^-1 with
// p = h(l^T t). Given the symmetric part g of its gradient, let
// q = l^-1 g l^-T. As h is its own adjoint, t has the gradient l h(q), and l
// has t h(q)^T by l^T, and -l^-T (p + p^T) q by the inverses.
void cholesky_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output l = lower_triangle(r, r.input(0));
  constexpr Triangle kPlain = {};
  const Output left =
      solve_triangular(r, l, symmetric_part(r, r.grad()), kPlain);
  const Output q = adjoint(r, solve_triangular(r, l, adjoint(r, left), kPlain));
  const Output h = halved_lower_triangle(r, q);
  if (r.wants(1)) r.set(1, lower_triangle(r, product(r, l, h)));
  if (!r.wants(0)) return;
  const Output t = lower_triangle(r, r.input(1));
  const Output p = halved_lower_triangle(r, product(r, l, t, {.of_a = true}));
  const Output twice = ops::add(s, p, adjoint(r, p));
  const Output by_inverses = solve_triangular(r, l, product(r, twice, q),
                                              {.lower = true, .adjoint = true});
  r.set(0, lower_triangle(
               r, ops::sub(s, product(r, t, h, {.of_b = true}), by_inverses)));
}

// --- Vectors ----------------------------------------------------------------

void cross_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0)) r.set(0, s.op("Cross", {r.input(1), r.grad()}));
  if (r.wants(1)) r.set(1, s.op("Cross", {r.grad(), r.input(0)}));
}

}  // namespace

void add_linalg_rules(RuleTable& table) {
  table.add("MatrixInverse", matrix_inverse_rule);
  table.add("MatrixDeterminant", determinant_rule);
  table.add("LogMatrixDeterminant", log_determinant_rule);
  table.add("MatrixSolve", matrix_solve_rule);
  table.add("MatrixTriangularSolve", triangular_solve_rule);
  table.add("Cholesky", cholesky_rule);
  table.add("CholeskyGrad", cholesky_grad_rule);
  add_decomposition_rules(table);
  add_svd_rules(table);
  table.add("Cross", cross_rule);
  table.add_forward({"Cross"}, multilinear<0, 1>);
}

}  // namespace tagflow::autodiff
