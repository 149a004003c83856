// Shared parts of the kernels of containers, and the registration of all.
#include "devices/kernels/containers/values.h"

#include <algorithm>
#include <new>

#include "devices/kernel_registry.h"

namespace tagflow::devices {

double cost_of_elements(const KernelContext& context, int input) {
  const Tensor& count = context.input(input);
  if (!count.is_inline_scalar(DataType::kInt32)) return 0;
  return 10.0 * std::max(0, *count.inline_data<int32_t>());
}

void release_nested(std::vector<Tensor>&& tensors) {
  if (!tensors.empty()) release_in_turn(std::move(tensors));
}

void release_nested(Tensor&& tensor) {
  if (tensor.dtype() != DataType::kVariant &&
      tensor.dtype() != DataType::kResource)
    return;
  try {
    std::vector<Tensor> one(1);
    one[0] = std::move(tensor);
    release_nested(std::move(one));
  } catch (const std::bad_alloc&) {
    tensor.reset();
  }
}

Result<StepResources*> step_resources(const KernelContext& context) {
  if (StepResources* resources = context.step().resources) return resources;
  return error(Code::kInternal, "[{}] there is no step to keep the object in",
               context.node().op());
}

std::string describe_variant(const Variant& variant) {
  return variant.get() == nullptr ? "an empty variant"
                                  : variant.get()->describe();
}

bool accepts_shape_of(const PartialShape& shape, const Tensor& tensor) {
  if (!shape.has_rank()) return true;
  if (shape.rank() != tensor.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape.dim_known(i) && shape.dim(i) != tensor.dim(i)) return false;
  return true;
}

Result<PartialShape> shape_input(const KernelContext& context, int input,
                                 std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.is_scalar()) {
    if (index_at(tensor, 0) == -1) return PartialShape();
    return context.fail("{} must be a vector, or -1 for any shape, not {}",
                        name, tensor.to_string());
  }
  if (tensor.rank() != 1)
    return context.fail("{} must be a vector, not {}", name, tensor.describe());
  if (tensor.dim(0) > kMaxRank)
    return context.fail("{} has {} dimensions, more than {}", name,
                        tensor.dim(0), kMaxRank);
  const Shape::Dims dims = index_elements(tensor);
  Result<PartialShape> shape = PartialShape::make({dims.data(), dims.size()});
  if (shape.ok()) return shape;
  return context.fail("{}: {}", name, shape.status().message());
}

}  // namespace tagflow::devices
