// Gradient arrays: made once for each name, with the known shapes of their
// array's elements.
#include "devices/kernels/containers/tensor_array.h"
#include "devices/kernels/containers/values.h"

namespace tagflow::devices {

namespace {

// Messages cut off the name of a gradient of a gradient of ..., which could be
// as long as the number of iterations of a loop.
constexpr size_t kLongestName = 256;

std::string gradient_name(const std::string& name, const std::string& source) {
  std::string result = name + "@" + source;
  if (result.size() > kLongestName) result.resize(kLongestName);
  return result;
}

Result<PartialShape> prepended(const KernelContext& context,
                               const Shape& prepend,
                               const PartialShape& shape) {
  if (!shape.has_rank()) return shape;
  if (prepend.rank() + shape.rank() > kMaxRank)
    return context.fail(
        "elements of {} below {} would have {} dimensions, more than {}",
        shape.to_string(), prepend.to_string(), prepend.rank() + shape.rank(),
        kMaxRank);
  PartialShape result = prepend;
  for (const int64_t dim : shape.dims()) result.add_dim(dim);
  return result;
}

}  // namespace

// Elements that were written in the array become zeros in its gradient.
Status TensorArray::mirror_locked(const KernelContext& context,
                                  TensorArray& gradient,
                                  const Shape& prepend) const {
  std::lock_guard lock(gradient.mutex_);
  gradient.split_size_ = split_size_;
  TAGFLOW_RETURN_IF_ERROR(gradient.store_locked(context, values_.size()));
  for (size_t i = 0; i < values_.size(); ++i) {
    if ((flags_[i] & kWritten) == 0) continue;
    gradient.flags_[i] = kWritten;
    TAGFLOW_ASSIGN(const PartialShape shape,
                   prepended(context, prepend, shape_locked(i)));
    const auto known = shape.to_shape();
    if (!known || shape == gradient.element_shape_) continue;
    TAGFLOW_ASSIGN(gradient.values_[i], dims_tensor(*known));
    gradient.flags_[i] |= kShape;
  }
  return {};
}

Result<Tensor> TensorArray::gradient(const KernelContext& context,
                                     const std::string& source,
                                     const Shape& prepend) {
  TAGFLOW_ASSIGN(StepResources * resources, step_resources(context));
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  if (was_added_)
    return fail(context,
                "it has no gradient, since values were added up in one index");
  dynamic_size_ = false;
  const auto it = gradients_.find(source);
  if (it != gradients_.end()) return it->second;
  Options options = options_;
  options.name = gradient_name(options_.name, source);
  TAGFLOW_ASSIGN(options.element_shape,
                 prepended(context, prepend, element_shape_));
  options.dynamic_size = false;
  options.clear_after_read = true;
  options.is_gradient = true;
  TAGFLOW_ASSIGN(Tensor handle, Tensor::allocate(DataType::kResource, {},
                                                 context.allocator()));
  auto& object = *handle.mutable_data<ResourceHandle>();
  object = resources->make<TensorArray>(std::move(options), size_,
                                        context.allocator());
  TAGFLOW_RETURN_IF_ERROR(
      mirror_locked(context, *step_object<TensorArray>(object), prepend));
  gradients_.emplace(source, handle);
  return handle;
}

}  // namespace tagflow::devices
