// The singular value decomposition.
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/linalg_decompositions.h"
#include "autodiff/rules/linalg_matrices.h"

namespace tagflow::autodiff {
namespace {

// Of A = U S V^H, with U and V without the columns that S lacks. With X = U^H
// gU, Y = V^H gV and F as above, of the squares of S:
//
//   U (F (X - X^H) S + S F (Y - Y^H) + gS) V^H
//     + (1 - U U^H) gU S^-1 V^H + U S^-1 gV^H (1 - V V^H)
//
// For complex matrices, columns of U and V may be rotated together, while a
// rotation of U only changes A: this adds (X - X^H) S^-1 / 2 on the diagonal.
class SvdGradient {
 public:
  explicit SvdGradient(RuleContext& r)
      : r_(r), s_(r.scope()), values_(r.output(0)) {
    u_ = take(1, known_wide(r) && known_tall(r), of_u_);
    v_ = take(2, known_wide(r) && known_tall(r), of_v_);
  }

  Output make() {
    Output inner, left, right;
    if (of_u_.valid()) {
      const Output x = product(r_, u_, of_u_, {.of_a = true});
      const Output turned = skew(r_, x);
      inner = scale_columns(r_, weighted(turned), values_);
      if (is_complex(values_.dtype()))
        inner = ops::add(
            s_, inner,
            ops::mul(s_, over_values(matrix_band(r_, turned, 0, 0)), 0.5));
      if (!known_wide(r_)) left = over_values(rest(u_, of_u_, x));
    }
    if (of_v_.valid()) {
      const Output y = product(r_, v_, of_v_, {.of_a = true});
      inner = plus(r_, inner, scale_rows(r_, weighted(skew(r_, y)), values_));
      if (!known_tall(r_)) right = over_values(rest(v_, of_v_, y));
    }
    if (inner.valid()) left = plus(r_, left, product(r_, u_, inner));
    if (r_.has_grad(0))
      left = plus(r_, left, scale_columns(r_, u_, real_part(s_, r_.grad(0))));
    Output sum = product(r_, left, v_, {.of_b = true});
    if (right.valid())
      sum = ops::add(s_, sum, product(r_, u_, right, {.of_b = true}));
    return sum;
  }

 private:
  // U or V, without the columns that S lacks, and its gradient. With U2 those
  // columns, U2^H dU = -dU2^H U if U2 does not rotate within its own space. So
  // their gradient adds -U2 gU2^H U to that of U.
  Output take(int port, bool is_square, Output& grad) {
    const Output all = r_.output(port);
    if (r_.has_grad(port)) grad = r_.grad(port);
    if (!r_.attr<bool>("full_matrices") || is_square) return all;
    const Output count = last_of(r_, r_.output_shape(0));
    const Output own = first_columns(r_, all, count);
    if (!grad.valid()) return own;
    const Output other = other_columns(r_, all, count);
    const Output of_other = other_columns(r_, grad, count);
    grad = ops::sub(
        s_, first_columns(r_, grad, count),
        product(r_, other, product(r_, of_other, own, {.of_a = true})));
    return own;
  }

  Output weighted(const Output& x) {
    const Output row = ops::expand_dims(s_, values_, -2);
    const Output column = ops::expand_dims(s_, values_, -1);
    const Output differences =
        ops::mul(s_, ops::sub(s_, row, column), ops::add(s_, row, column));
    return ops::mul(s_, x, ops::div_no_nan(s_, 1, differences));
  }

  // x S^-1.
  Output over_values(const Output& x) {
    return ops::div_no_nan(s_, x, ops::expand_dims(s_, values_, -2));
  }

  // (1 - q q^H) grad, where `inner` is q^H grad.
  Output rest(const Output& q, const Output& grad, const Output& inner) {
    return ops::sub(s_, grad, product(r_, q, inner));
  }

  RuleContext& r_;
  const Scope& s_;
  const Output values_;
  Output u_, v_, of_u_, of_v_;
};

void svd_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.attr<bool>("compute_uv")) return r.set(0, SvdGradient(r).make());
  const graph::OpResult all = s.op("Svd", {r.input(0)});
  const Output left = scale_columns(r, all[1], real_part(s, r.grad(0)));
  r.set(0, product(r, left, all[2], {.of_b = true}));
}

}  // namespace

void add_svd_rules(RuleTable& table) { table.add("Svd", svd_rule); }

}  // namespace tagflow::autodiff
