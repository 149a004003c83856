// Batches of matrix products between tensors, sharded over workers: the common
// part of MatMul, BatchMatMul and Einsum.
#pragma once

#include "devices/kernel.h"
#include "devices/product_batch.h"

namespace tagflow::devices {

// Computes the batch into `out`. The element types of a and b may differ from
// each other and from out's if their values convert exactly enough: int8 and
// uint8 to int32, for instance. 16-bit floats are multiplied and summed in
// float.
// REQUIRES: a, b and out have the elements that the batch says; all types are
// numeric, and either all or none complex.
Status multiply(KernelContext& context, const ProductBatch& batch,
                const Tensor& a, const Tensor& b, Tensor& out);

// Adds one product to `sum`. The stored factors may have more rows than the
// product. REQUIRES: a, b and sum are all of float, or all of double, and have
// the elements; the batch has no dimensions; nobody else holds `sum`.
Status add_product(const KernelContext& context, const ProductBatch& product,
                   const Tensor& a, const Tensor& b, Tensor& sum);

// Estimated nanoseconds of `count` products, conversions included.
double multiply_cost(DataType dtype, int64_t count, int64_t m, int64_t n,
                     int64_t k);

}  // namespace tagflow::devices
