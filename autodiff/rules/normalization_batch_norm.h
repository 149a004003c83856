// Helpers for the rules of batch normalisation, which are a part of
// add_normalization_rules().
#pragma once

#include <vector>

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Note [Batch normalisation]
// For each channel with n elements x, mean m and (biased) variance v:
//
//   w = 1 / sqrt(v + epsilon)    z = (x - m) w    y = scale z + offset
//
// In training m and v are those of the batch. The gradient op is then
//
//   dx = scale w P(dy)    P(u) = u - mean(u) - z mean(u z)
//   dscale = sum(dy z)    doffset = sum(dy)
//
// It takes m and v in reserved inputs, but its dx includes all paths from x to
// y, also those through m and v. So the reserved inputs and outputs have no
// gradients, and its own gradient computes m and v from x. With
//
//   d sum(u z) / dx = w P(u)    dw / dx = -w^2 z / n
//
// and P being symmetric, gradients a of dx, b of dscale and c of doffset make
//
//   of dy     scale w P(a) + b z + c
//   of scale  w sum(a P(dy))
//   of x      w (b P(dy) - scale w (mean(a P(dy)) z + mean(dy z) P(a) +
//                                   mean(a z) P(dy)))
//
// In inference m and v are inputs that do not depend on x: P is the identity,
// and m and v have gradients like all inputs.

// The computations of the rules. Tensors are of float here, regardless of the
// type of x; vectors of channels become tensors of one row, which broadcast to
// x.
class NormMath {
 public:
  explicit NormMath(RuleContext& r);

  Output single(const Output& x) const;
  Output row(const Output& vector) const;
  // Sums and means of each channel, as a row.
  Output sum(const Output& x) const;
  Output mean(const Output& x) const;
  Output mean_of_product(const Output& x, const Output& y) const;
  // 1 / sqrt(variance + epsilon).
  Output inverse_deviation(const Output& variance) const;
  // The number of elements of the input per channel, a scalar.
  Output count(int input) const;
  // x + y, each of which may be invalid.
  Output plus(const Output& x, const Output& y) const;

  // Sets the gradient of an input, in its type.
  void set(int input, const Output& gradient) const;
  // Set it from a row: as a vector, or repeated for all rows.
  void set_vector(int input, const Output& row) const;
  void set_repeated(int input, const Output& row) const;

 private:
  RuleContext& r_;
  const Scope& s_;
  std::vector<int64_t> reduced_, row_shape_;
};

void add_batch_norm_rules(RuleTable& table);
void add_batch_norm_grad_rules(RuleTable& table);

}  // namespace tagflow::autodiff
