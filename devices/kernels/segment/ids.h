// The integer inputs of segment ops, checked.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// The elements of an integer tensor as int64; shared if they are so already.
Result<Tensor> as_int64(const KernelContext& context, const Tensor& tensor);

// The value of an integer scalar input that is the number of rows of an output.
// InvalidArgument if it is not a scalar or negative.
Result<int64_t> row_count(const KernelContext& context, int input);

// InvalidArgument unless `ids` is a vector of as many ids as `rows`, sorted
// and not negative. REQUIRES: ids are int64.
Status check_sorted_ids(const KernelContext& context, const Tensor& ids,
                        int64_t rows);

// [rows] and the dimensions of `data` from `from` on.
Result<Shape> rows_shape(int64_t rows, const Tensor& data, int from);

// The number of elements of data's dimensions from `from` on; meaningless if
// it overflows, which is possible without rows.
int64_t row_size(const Tensor& data, int from);

}  // namespace tagflow::devices
