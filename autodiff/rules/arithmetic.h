// Helpers that rules of several families share.
#pragma once

#include "autodiff/rule.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

// `x` cast to `dtype`, or `x` itself if it has that type.
inline Output as_type(const Scope& s, const Output& x, DataType dtype) {
  return x.dtype() == dtype ? x : ops::cast(s, x, dtype);
}

// float of complex64, double of complex128.
inline DataType part_dtype(DataType complex) {
  return complex == DataType::kComplex128 ? DataType::kDouble
                                          : DataType::kFloat;
}

// `x` with imaginary parts of zero, of the same type. A real tensor is returned
// as it is.
inline Output real_part(const Scope& s, const Output& x) {
  if (!is_complex(x.dtype())) return x;
  return ops::cast(s, ops::cast(s, x, part_dtype(x.dtype())), x.dtype());
}

// Sets the gradient of input 0 for y = f(x), where f'(x) is `slope`.
inline void set_by_slope(RuleContext& r, const Output& slope) {
  r.set(0, ops::mul(r.scope(), r.grad(), r.conj(slope)));
}

// The derivative of products over groups of x's elements: for each element the
// product of the others of its group. `sum` and `product` reduce a tensor of
// x's shape by groups and repeat the results so that they broadcast to x;
// `all` is product(x).
//
// For a nonzero element it is the product divided by the element. For a zero it
// is the product of the nonzero elements, times the other zeros of the group.
// That factor is zero if there are other zeros, but up to three of them are
// written out as an elementary symmetric polynomial, by sums of powers. So its
// derivatives are right up to the third, and all gradients of the product up to
// the fourth. With more than three other zeros, these are zero as well.
template <class Sum, class Product>
Output products_of_others(const Scope& s, const Output& x, const Output& all,
                          Sum sum, Product product) {
  const Output is_zero = ops::equal(s, x, 0);
  const Output number = sum(ops::cast(s, is_zero, DataType::kInt32));
  const Output divisor = ops::select(s, is_zero, 1, x);
  // Sums of the k-th powers of the other zeros.
  const Output zero = ops::select(s, is_zero, x, 0);
  const Output square = ops::square(s, zero);
  const Output cube = ops::mul(s, square, zero);
  const Output p1 = ops::sub(s, sum(zero), zero);
  const Output p2 = ops::sub(s, sum(square), square);
  const Output p3 = ops::sub(s, sum(cube), cube);
  const Output e2 = ops::real_div(s, ops::sub(s, ops::square(s, p1), p2), 2);
  const Output e3 = ops::real_div(
      s, ops::add(s, ops::mul(s, p1, ops::sub(s, e2, p2)), p3), 3);
  const auto with = [&](int zeros, const graph::Input& product_of_zeros,
                        const graph::Input& otherwise) {
    return ops::select(s, ops::equal(s, number, zeros), product_of_zeros,
                       otherwise);
  };
  const Output other_zeros =
      with(1, 1, with(2, p1, with(3, e2, with(4, e3, 0))));
  return ops::select(s, is_zero, ops::mul(s, product(divisor), other_zeros),
                     ops::real_div(s, all, divisor));
}

}  // namespace tagflow::autodiff
