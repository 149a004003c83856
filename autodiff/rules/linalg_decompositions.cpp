// LU, QR and eigenvalue decompositions.
#include "autodiff/rules/linalg_decompositions.h"

#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/linalg_matrices.h"

namespace tagflow::autodiff {

Output last_of(RuleContext& r, const Output& shape) {
  return ops::strided_slice(r.scope(), shape, r.ints({-1}), r.ints({0}),
                            r.ints({1}), {.end_mask = 1});
}

Output first_columns(RuleContext& r, const Output& x, const Output& count) {
  const Scope& s = r.scope();
  const Output end = ops::concat(s, {r.ints({0}), count}, 0);
  return ops::strided_slice(s, x, r.ints({0, 0}), end, r.ints({1, 1}),
                            {.begin_mask = 2, .ellipsis_mask = 1});
}

Output other_columns(RuleContext& r, const Output& x, const Output& count) {
  const Scope& s = r.scope();
  const Output begin = ops::concat(s, {r.ints({0}), count}, 0);
  return ops::strided_slice(s, x, begin, r.ints({0, 0}), r.ints({1, 1}),
                            {.end_mask = 2, .ellipsis_mask = 1});
}

bool known_tall(const RuleContext& r) {
  const PartialShape& shape = r.known_input_shape(0);
  if (!shape.has_rank() || shape.rank() < 2) return false;
  const int64_t rows = shape.dim(shape.rank() - 2);
  const int64_t columns = shape.dim(shape.rank() - 1);
  return columns != PartialShape::kUnknown && rows >= columns;
}

bool known_wide(const RuleContext& r) {
  const PartialShape& shape = r.known_input_shape(0);
  if (!shape.has_rank() || shape.rank() < 2) return false;
  const int64_t rows = shape.dim(shape.rank() - 2);
  const int64_t columns = shape.dim(shape.rank() - 1);
  return rows != PartialShape::kUnknown && columns >= rows;
}

Output skew(RuleContext& r, const Output& x) {
  return ops::sub(r.scope(), x, adjoint(r, x));
}

namespace {

// y u^-H, for an upper triangular u.
Output over_adjoint(RuleContext& r, const Output& y, const Output& u) {
  return adjoint(r, solve_triangular(r, u, adjoint(r, y), {.lower = false}));
}

// --- LU ---------------------------------------------------------------------

// Of P A = L U. With X = L^-1 P dA U^-1, dL = L X below the diagonal and
// dU = X U from it on. So the gradient of X is L^H gL below the diagonal, and
// gU U^H from it on.
void lu_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output lu = r.output(), g = r.grad();
  const auto below = [&](const Output& x) {
    return ops::sub(s, x, upper_triangle(r, x));
  };
  const Output one = matrix_band(r, ops::ones_like(s, lu), 0, 0);
  const Output l = ops::add(s, below(lu), one);
  const Output of_x = ops::add(
      s, below(product(r, l, below(g), {.of_a = true})),
      upper_triangle(r, product(r, upper_triangle(r, g), upper_triangle(r, lu),
                                {.of_b = true})));
  const Output left = solve_triangular(r, l, of_x, {.adjoint = true});
  const Output rows = over_adjoint(r, left, lu);
  // Row i of P A is row p[i] of A.
  const Output size = ops::reshape(s, last_of(r, r.output_shape()), r.ints({}));
  const Output p =
      ops::one_hot(s, r.output(1), size, r.scalar(1, g), r.scalar(0, g));
  r.set(0, product(r, p, rows, {.of_a = true}));
}

// --- QR ---------------------------------------------------------------------

// S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
// functions with application in optimum experimental design", 2010, extended to
// complex matrices, where the diagonal of R is real.
//
// Of A = Q R with a square R, let M = gR R^H - Q^H gQ and H the self-adjoint
// matrix that has the upper triangle of M: A has the gradient
// (gQ + Q H) R^-H.
//
// A wide A is (X Y) = Q (U V), and X = Q U. As V = Q^H Y, the gradient of Y is
// Q gV, and the gradient of Q, which leads to X, also has Y gV^H = Q V gV^H.
void qr_rule(RuleContext& r) {
  if (r.attr<bool>("full_matrices") && !known_wide(r))
    return r.fail(
        "of the full matrices of a matrix with more rows than columns, q is "
        "not unique");
  const Scope& s = r.scope();
  const bool is_split = !known_tall(r);
  const Output q = r.output(0), of_q = r.has_grad(0) ? r.grad(0) : Output();
  Output u = r.output(1), of_u, of_v, by_v;
  if (r.has_grad(1) || is_split) of_u = r.grad(1);
  if (is_split) {
    const Output count = last_of(r, r.output_shape(0));
    const Output v = other_columns(r, u, count);
    of_v = other_columns(r, of_u, count);
    u = first_columns(r, u, count);
    of_u = first_columns(r, of_u, count);
    by_v = product(r, v, of_v, {.of_b = true});
  }
  Output m;
  if (of_u.valid()) m = product(r, of_u, u, {.of_b = true});
  if (by_v.valid()) m = ops::sub(s, m, by_v);
  if (of_q.valid())
    m = plus(r, m, ops::neg(s, product(r, q, of_q, {.of_a = true})));
  const Output half = upper_triangle(r, m);
  const Output twice = ops::add(s, half, adjoint(r, half));
  const Output h =
      ops::sub(s, twice, ops::mul(s, matrix_band(r, twice, 0, 0), 0.5));
  const Output of_x =
      over_adjoint(r, plus(r, of_q, product(r, q, plus(r, h, by_v))), u);
  r.set(0, is_split ? ops::concat(s, {of_x, product(r, q, of_v)}, -1) : of_x);
}

// --- Eigenvalues ------------------------------------------------------------

// Of A = V diag(e) V^H: V (diag(ge) + F (V^H gV)) V^H, where F, multiplied
// element by element, is 1 / (e[j] - e[i]), and zero for equal eigenvalues, as
// their vectors may be any. The op reads the lower triangle only.
void self_adjoint_eigen_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const bool has_vectors = r.attr<bool>("compute_v");
  const Output v =
      has_vectors ? r.output(1) : s.op("SelfAdjointEigV2", {r.input(0)})[1];
  Output left;
  if (r.has_grad(0)) left = scale_columns(r, v, r.grad(0));
  if (has_vectors && r.has_grad(1)) {
    const Output e = r.output(0);
    const Output differences =
        ops::sub(s, ops::expand_dims(s, e, -2), ops::expand_dims(s, e, -1));
    const Output inner = ops::mul(s, ops::div_no_nan(s, 1, differences),
                                  product(r, v, r.grad(1), {.of_a = true}));
    left = plus(r, left, product(r, v, inner));
  }
  const Output of_a = product(r, left, v, {.of_b = true});
  r.set(0, halved_lower_triangle(r, ops::add(s, of_a, adjoint(r, of_a))));
}

}  // namespace

void add_decomposition_rules(RuleTable& table) {
  table.add("Lu", lu_rule);
  table.add("Qr", qr_rule);
  table.add("SelfAdjointEigV2", self_adjoint_eigen_rule);
}

}  // namespace tagflow::autodiff
