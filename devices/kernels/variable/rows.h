// Rows of variables that updates select by their numbers.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// Integer indices as int64, each of which is checked to be in [0, limit):
// InvalidArgument names the first that is not, and its position.
Result<Tensor> row_numbers(KernelContext& context, const Tensor& indices,
                           int64_t limit);

}  // namespace tagflow::devices
