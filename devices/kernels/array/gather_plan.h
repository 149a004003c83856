// The elements that Gather and GatherV2 select.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// The params as parts of `limit` slices of `slice` elements each; the indices
// as batches of `per_batch`, each of which serves `repeat` parts in a row. If
// the output has no elements, only `shape` and `limit` are valid.
struct GatherPlan {
  Shape shape;  // of the output
  int64_t slice = 1;
  int64_t limit = 0;
  int64_t per_batch = 0;
  int64_t repeat = 1;
};

// For the inputs params, indices and, optionally, axis, which is read.
// InvalidArgument if they do not match; index values are not checked.
Result<GatherPlan> plan_gather(const KernelContext& context,
                               int64_t batch_dims);
// As above, for any params, along an axis, indexed by input 1.
Result<GatherPlan> plan_gather(const KernelContext& context,
                               const Tensor& params, int64_t axis,
                               int64_t batch_dims);
// The axis in input 2; 0 if there is none.
Result<int64_t> gather_axis(const KernelContext& context);

}  // namespace tagflow::devices
