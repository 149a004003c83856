#include "devices/kernels/array/gather_plan.h"

#include "devices/copy.h"
#include "devices/kernel_inputs.h"

namespace tagflow::devices {
namespace {

// Also checks that the batch dimensions of both agree.
Result<int> checked_batch_dims(const KernelContext& context,
                               const Tensor& params, int64_t wanted, int axis) {
  const Tensor& indices = context.input(1);
  if (wanted < -indices.rank() || wanted > indices.rank())
    return context.fail("batch_dims is {}, but indices {} have {} dimensions",
                        wanted, indices.describe(), indices.rank());
  const auto batch = int(wanted < 0 ? wanted + indices.rank() : wanted);
  if (batch > axis)
    return context.fail(
        "batch_dims is {}, and must not be more than the axis, {}", batch,
        axis);
  for (int i = 0; i < batch; ++i)
    if (params.dim(i) != indices.dim(i))
      return context.fail("params {} and indices {} differ in dimension {}",
                          params.describe(), indices.describe(), i);
  return batch;
}

}  // namespace

Result<int64_t> gather_axis(const KernelContext& context) {
  if (context.num_inputs() < 3) return 0;
  if (!context.input(2).is_scalar())
    return context.fail("axis must be a scalar, got {}",
                        context.input(2).describe());
  return index_scalar(context, 2, "axis");
}

Result<GatherPlan> plan_gather(const KernelContext& context,
                               int64_t batch_dims) {
  TAGFLOW_ASSIGN(const int64_t axis, gather_axis(context));
  return plan_gather(context, context.input(0), axis, batch_dims);
}

Result<GatherPlan> plan_gather(const KernelContext& context,
                               const Tensor& params, int64_t axis_value,
                               int64_t batch_dims) {
  const Tensor& indices = context.input(1);
  if (params.rank() < 1)
    return context.fail("params must be at least a vector, got {}",
                        params.describe());
  TAGFLOW_ASSIGN(const int axis,
                 checked_axis(context, axis_value, params.rank()));
  TAGFLOW_ASSIGN(const int batch,
                 checked_batch_dims(context, params, batch_dims, axis));
  GatherPlan plan;
  for (int i = 0; i < axis; ++i) plan.shape.add_dim(params.dim(i));
  for (int i = batch; i < indices.rank(); ++i)
    plan.shape.add_dim(indices.dim(i));
  for (int i = axis + 1; i < params.rank(); ++i)
    plan.shape.add_dim(params.dim(i));
  TAGFLOW_ASSIGN(plan.shape, Shape::make(plan.shape.dims()));
  plan.limit = params.dim(axis);
  if (plan.shape.num_elements() == 0) return plan;
  const Shape whole = params.shape();
  plan.slice = product(whole.dims(), axis + 1, whole.rank());
  plan.repeat = product(whole.dims(), batch, axis);
  plan.per_batch = indices.num_elements() / product(whole.dims(), 0, batch);
  return plan;
}

}  // namespace tagflow::devices
