#include "devices/kernels/reduction/plan.h"

#include <algorithm>

namespace tagflow::devices {

Result<boost::container::small_vector<bool, 8>> reduced_dims(
    const KernelContext& context, const Tensor& input, const Tensor& axes) {
  const int rank = input.rank();
  boost::container::small_vector<bool, 8> reduced(size_t(rank), false);
  const int64_t count = axes.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = axes.dtype() == DataType::kInt32
                             ? axes.data<int32_t>()[i]
                             : axes.data<int64_t>()[i];
    if (axis < -rank || axis >= rank)
      return context.fail("axis {} is not a dimension of {}", axis,
                          input.describe());
    bool& flag = reduced[size_t(axis < 0 ? axis + rank : axis)];
    if (flag) return context.fail("axis {} is given twice", axis);
    flag = true;
  }
  return reduced;
}

Result<ReductionPlan> plan_reduction(const KernelContext& context,
                                     const Tensor& input, const Tensor& axes,
                                     bool keep_dims) {
  TAGFLOW_ASSIGN(const auto is_reduced, reduced_dims(context, input, axes));
  ReductionPlan plan;
  for (int i = 0; i < input.rank(); ++i) {
    if (!is_reduced[size_t(i)])
      plan.output_shape.add_dim(input.dim(i));
    else if (keep_dims)
      plan.output_shape.add_dim(1);
  }
  // Without an empty dimension, the rest may be too large.
  TAGFLOW_ASSIGN(plan.output_shape, Shape::make(plan.output_shape.dims()));
  // Without elements there is nothing to iterate over, but the counts are used;
  // each of them is 0 or fits, as the input's and the output's sizes do.
  plan.kept_count = plan.output_shape.num_elements();
  if (input.num_elements() == 0) {
    plan.reduced_count = 0;
    return plan;
  }
  int64_t step = 1;
  bool last_reduced = false, any = false;
  for (int i = input.rank(); i-- > 0;) {
    const int64_t size = input.dim(i);
    if (size == 1) continue;
    const bool reduced = is_reduced[size_t(i)];
    auto& runs = reduced ? plan.reduced : plan.kept;
    if (any && reduced == last_reduced) {
      runs.back().size *= size;
    } else {
      runs.push_back({size, step});
      if (!any) plan.ends_reduced = reduced;
    }
    if (reduced) plan.reduced_count *= size;
    any = true;
    last_reduced = reduced;
    step *= size;
  }
  std::ranges::reverse(plan.kept);
  std::ranges::reverse(plan.reduced);
  return plan;
}

}  // namespace tagflow::devices
