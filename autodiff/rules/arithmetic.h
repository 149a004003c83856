// What rules of several families share.
#pragma once

#include "autodiff/rule.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

// A Cast where `x` is of another type.
inline Output as_type(const Scope& s, const Output& x, DataType dtype) {
  return x.dtype() == dtype ? x : ops::cast(s, x, dtype);
}

// float of complex64, double of complex128.
inline DataType part_dtype(DataType complex) {
  return complex == DataType::kComplex128 ? DataType::kDouble
                                          : DataType::kFloat;
}

// Without the imaginary parts, of the same type: of a tensor that is not
// complex, the tensor itself.
inline Output real_part(const Scope& s, const Output& x) {
  if (!is_complex(x.dtype())) return x;
  return ops::cast(s, ops::cast(s, x, part_dtype(x.dtype())), x.dtype());
}

// The derivative of products over groups of x's elements: for each element the
// product of the others of its group. `sum` and `product` reduce a tensor of
// x's shape by groups and repeat the results so that they broadcast to x;
// `all` is product(x).
//
// An element that is not zero divides the product by itself. For a zero it is
// the product of what is not zero, times the other zeros of the group. That
// factor is written out for up to one other zero: then the derivative of what
// this makes is right, too, though its value is zero. With two others, that
// derivative is zero as well.
template <class Sum, class Product>
Output products_of_others(const Scope& s, const Output& x, const Output& all,
                          Sum sum, Product product) {
  const Output is_zero = ops::equal(s, x, 0);
  const Output zeros = sum(ops::cast(s, is_zero, DataType::kInt32));
  const Output divisor = ops::select(s, is_zero, 1, x);
  const Output other_zero = ops::sub(s, sum(ops::select(s, is_zero, x, 0)), x);
  const Output other_zeros =
      ops::select(s, ops::equal(s, zeros, 1), 1,
                  ops::select(s, ops::equal(s, zeros, 2), other_zero, 0));
  return ops::select(s, is_zero, ops::mul(s, product(divisor), other_zeros),
                     ops::real_div(s, all, divisor));
}

}  // namespace tagflow::autodiff
