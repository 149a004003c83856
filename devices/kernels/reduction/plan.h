// The dimensions that a reduction removes, in a canonical form.
#pragma once

#include <boost/container/small_vector.hpp>

#include "devices/kernel.h"

namespace tagflow::devices {

// A list of dimension numbers as every reduction takes it: int32 or int64,
// negative ones count from the end, any shape. Returns one flag per dimension.
// InvalidArgument if one is out of range or repeated.
Result<boost::container::small_vector<bool, 8>> reduced_dims(
    const KernelContext& context, const Tensor& input, const Tensor& axes);

// The dimension of input 0 that ArgMax and ArgMin search: input 1, a scalar.
Result<int> arg_axis(const KernelContext& context);

// The dimensions of an input without those of size 1; neighbours are merged
// if both are kept or both reduced, so the rest alternates.
struct ReductionPlan {
  struct Run {
    int64_t size;
    int64_t step;  // distance between neighbours, in elements of the input
  };
  using Runs = boost::container::small_vector<Run, 4>;

  Shape output_shape;
  Runs kept, reduced;         // outermost first
  bool ends_reduced = false;  // the innermost run is reduced
  int64_t kept_count = 1;     // elements of the output
  int64_t reduced_count = 1;  // input elements for each of them

  // Distance from the first element to element `index` of these runs.
  static int64_t offset(const Runs& runs, int64_t index) {
    int64_t sum = 0;
    for (size_t i = runs.size(); i-- > 1;) {
      sum += index % runs[i].size * runs[i].step;
      index /= runs[i].size;
    }
    return runs.empty() ? 0 : sum + index * runs[0].step;
  }
};

Result<ReductionPlan> plan_reduction(const KernelContext& context,
                                     const Tensor& input, const Tensor& axes,
                                     bool keep_dims);

}  // namespace tagflow::devices
