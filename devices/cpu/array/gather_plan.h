// What Gather and GatherV2 pick out of what.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// The params as parts of `limit` slices of `slice` elements each; the indices
// as batches of `per_batch`, each of which serves `repeat` parts in a row.
// Where the output has no elements only `shape` and `limit` have a meaning.
struct GatherPlan {
  Shape shape;  // of the output
  int64_t slice = 1;
  int64_t limit = 0;
  int64_t per_batch = 0;
  int64_t repeat = 1;
};

// Of inputs params, indices and, where there is a third, axis, which is read.
// InvalidArgument where they do not fit together; indices are not looked at.
Result<GatherPlan> plan_gather(const KernelContext& context,
                               int64_t batch_dims);
// The same of any params, along an axis, as input 1 indexes them.
Result<GatherPlan> plan_gather(const KernelContext& context,
                               const Tensor& params, int64_t axis,
                               int64_t batch_dims);
// The axis that input 2 names; 0 where there is none.
Result<int64_t> gather_axis(const KernelContext& context);

}  // namespace tagflow::devices
