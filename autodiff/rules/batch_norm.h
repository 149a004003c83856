// Batch normalisation: what its rules share. They are a part of
// add_normalization_rules().
#pragma once

#include <vector>

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Note [Batch normalisation]
// Of each channel with n elements x, of mean m and (biased) variance v:
//
//   w = 1 / sqrt(v + epsilon)    z = (x - m) w    y = scale z + offset
//
// In training m and v are those of the batch. The gradient op is then
//
//   dx = scale w P(dy)    P(u) = u - mean(u) - z mean(u z)
//   dscale = sum(dy z)    doffset = sum(dy)
//
// It takes m and v in reserved inputs, but its dx counts all the ways by which
// x reaches y. So the reserved inputs and outputs have no gradients, and what
// its own gradient needs of m and v is computed from x. With
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
// Otherwise m and v are inputs, of which no output depends on x: P is the
// identity, and m and v have gradients like all inputs.

// What the rules compute with. Tensors are of float here, whatever x is;
// vectors of channels become tensors of one row, which broadcast to x.
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
  // How many elements of the input a channel has, a scalar.
  Output count(int input) const;
  // x + y, each of which may be invalid.
  Output plus(const Output& x, const Output& y) const;

  // Sets the gradient of an input, in its type.
  void set(int input, const Output& gradient) const;
  // The same from a row: for a vector, and for all rows alike.
  void set_vector(int input, const Output& row) const;
  void set_repeated(int input, const Output& row) const;

 private:
  RuleContext& r_;
  const Scope& s_;
  std::vector<int64_t> reduced_, row_shape_;
};

void add_batch_norm_rules(RuleTable& table);       // batch_norm.cpp
void add_batch_norm_grad_rules(RuleTable& table);  // batch_norm_grad.cpp

}  // namespace tagflow::autodiff
