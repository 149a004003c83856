// Tensors as rows of others: how they are stacked, joined, cut and summed.
#pragma once

#include <span>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

// A tensor of zeros, empty strings, or empty handles. InvalidArgument if no
// tensor can have the shape, since a PartialShape may exceed the limits.
Result<Tensor> make_zeros(const KernelContext& context, DataType dtype,
                          const Shape& shape);

// Stacks tensors of one shape as rows: [rows] + row_shape. A tensor that is not
// valid counts as zeros. REQUIRES: all others are of that type and shape.
Result<Tensor> stack_rows(const KernelContext& context, DataType dtype,
                          std::span<const Tensor> rows, const Shape& row_shape);
// Sets an output to tensors joined along their first dimension, parts[i] of
// lengths[i] rows, each of shape `rest`. A tensor that is not valid counts as
// zeros. InvalidArgument if the result would be too large. REQUIRES: all
// others are of the output's type and have these rows; no length is negative.
Status join_rows(KernelContext& context, std::span<const Tensor> parts,
                 std::span<const int64_t> lengths, const Shape& rest,
                 int output = 0);
// The rows of a tensor, appended to `rows`. REQUIRES: its rank is at least 1.
Status unstack_rows(const KernelContext& context, const Tensor& tensor,
                    std::vector<Tensor>& rows);
// `count` rows from `begin` on as a tensor of their own. REQUIRES: they exist.
Result<Tensor> copy_rows(const KernelContext& context, const Tensor& tensor,
                         int64_t begin, int64_t count);

// The sum of two tensors of one numeric type and shape. `a` is used in place
// if `may_overwrite` and nobody else holds it. InvalidArgument for types
// without a sum.
Result<Tensor> add_tensors(const KernelContext& context, Tensor a,
                           const Tensor& b, bool may_overwrite);

}  // namespace tagflow::devices
