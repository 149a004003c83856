#include "devices/kernels/containers/tensor_array.h"

#include <algorithm>

#include "devices/counted_growth.h"
#include "devices/kernels/containers/values.h"
#include "devices/tensor_rows.h"
#include "devices/thread_activity.h"
#include "graph/status_exception.h"

namespace tagflow::devices {

namespace {

// Of the object, its handle, and its place in the list of the step.
constexpr size_t kOwnBytes = sizeof(TensorArray) + 128;

}  // namespace

TensorArray::TensorArray(Options options, int64_t size, Allocator& memory)
    : options_(std::move(options)),
      dynamic_size_(options_.dynamic_size),
      shape_is_open_(options_.identical_shapes &&
                     !options_.element_shape.fully_known()),
      element_shape_(options_.element_shape),
      size_(size) {
  if (!charge_.set(memory, kOwnBytes))
    throw StatusException(out_of_memory(memory, "a tensor array", kOwnBytes));
}

TensorArray::~TensorArray() {
  release(std::move(values_), std::move(gradients_));
}

void TensorArray::release(std::vector<Tensor>&& values, Gradients&& gradients) {
  const FreedElements freed("tensor array", values.size());
  for (auto& [source, handle] : gradients) release_nested(std::move(handle));
  release_nested(std::move(values));
  values.clear();
}

std::string TensorArray::describe() const {
  std::lock_guard lock(mutex_);
  return fmt::format("tensor array \"{}\" of {} with {} elements",
                     options_.name, dtype_name(options_.dtype), size_);
}

void TensorArray::end() {
  std::vector<Tensor> values;
  Gradients gradients;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    values.swap(values_);
    gradients.swap(gradients_);
    flags_.clear();
    charge_.clear();
    size_ = 0;
  }
  release(std::move(values), std::move(gradients));
}

Status TensorArray::check_open(const KernelContext& context) const {
  if (!closed_) [[likely]]
    return {};
  return fail(context, "it has been closed");
}

Result<int64_t> TensorArray::size(const KernelContext& context) const {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  return size_;
}

double TensorArray::estimated_bytes(int64_t count) const {
  std::lock_guard lock(mutex_);
  if (count < 0) count = size_;
  const double bytes = !values_.empty() && has_value_locked(0)
                           ? double(values_[0].bytes())
                           : double(dtype_size(options_.dtype));
  return double(count) * (bytes + double(sizeof(Tensor)));
}

// --- Writing ----------------------------------------------------------------

Status TensorArray::write(const KernelContext& context, int64_t index,
                          const Tensor& value) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  return write_locked(context, index, value);
}

Status TensorArray::write_many(const KernelContext& context,
                               const int32_t* indices,
                               std::span<const Tensor> values) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  for (size_t i = 0; i < values.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(write_locked(
        context, indices == nullptr ? int64_t(i) : indices[i], values[i]));
  return {};
}

// Grows the array so that element `index` is stored.
Status TensorArray::grow_locked(const KernelContext& context, int64_t index) {
  if (index >= size_) {
    if (index >= kMaxContainerElements)
      return error(Code::kResourceExhausted,
                   "[{}] tensor array \"{}\" would have {} elements, more than "
                   "{}",
                   context.node().op(), options_.name, index + 1,
                   kMaxContainerElements);
    size_ = index + 1;
  }
  if (index < int64_t(values_.size())) return {};
  const auto wanted =
      std::max<size_t>({size_t(index) + 1, 2 * values_.size(), 64});
  const auto most = size_t(dynamic_size_ ? kMaxContainerElements : size_);
  return store_locked(context, std::min(wanted, most));
}

Status TensorArray::store_locked(const KernelContext& context, size_t stored) {
  const auto what = [&] {
    return fmt::format("tensor array \"{}\" with {} elements", options_.name,
                       size_);
  };
  return grow_counted(context, charge_,
                      kOwnBytes + stored * (sizeof(Tensor) + 1), what, [&] {
                        // Reserved, since resizing alone may allocate more than
                        // requested.
                        flags_.reserve(stored);
                        values_.reserve(stored);
                        flags_.resize(stored);
                        values_.resize(stored);
                      });
}

Status TensorArray::write_locked(const KernelContext& context, int64_t index,
                                 const Tensor& value) {
  if (index < 0)
    return fail(context, "cannot write to index {}, which is negative", index);
  if (index >= size_ && !dynamic_size_)
    return fail(context,
                "cannot write to index {}, the size is {} and cannot grow",
                index, size_);
  if (value.dtype() != options_.dtype)
    return fail(context, "cannot write {} to index {}, elements are of type {}",
                value.describe(), index, dtype_name(options_.dtype));
  if (!accepts_shape_of(element_shape_, value))
    return fail(context,
                "cannot write {} to index {}, elements have the shape {}",
                value.describe(), index, element_shape_.to_string());
  if (index >= int64_t(values_.size())) {
    TAGFLOW_RETURN_IF_ERROR(grow_locked(context, index));
  } else if (index >= size_) {
    size_ = index + 1;
  }
  const auto at = size_t(index);
  const uint8_t flags = flags_[at];
  if (flags != 0) [[unlikely]] {
    if ((flags & kRead) != 0)
      return fail(context, "cannot write to index {}, it was read already",
                  index);
    if (!options_.is_gradient)
      return fail(context, "cannot write to index {} a second time", index);
    return add_locked(context, at, value);
  }
  if (shape_is_open_) [[unlikely]] {
    element_shape_ = value.shape();
    shape_is_open_ = false;
  }
  values_[at] = value;
  flags_[at] = kWritten;
  return {};
}

Status TensorArray::add_locked(const KernelContext& context, size_t at,
                               const Tensor& value) {
  const PartialShape shape = shape_locked(at);
  if (!accepts_shape_of(shape, value))
    return fail(context, "cannot add {} to index {}, which has the shape {}",
                value.describe(), at, shape.to_string());
  if (!has_value_locked(at)) {
    values_[at] = value;  // replaces the zeros that it stood for
    flags_[at] &= ~kShape;
    return {};
  }
  was_added_ = true;
  const bool owned = (flags_[at] & kOwned) != 0;
  TAGFLOW_ASSIGN(values_[at],
                 add_tensors(context, std::move(values_[at]), value, owned));
  flags_[at] |= kOwned;
  return {};
}

Status TensorArray::prepare_for(const KernelContext& context, int64_t count,
                                bool exactly) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  if (dynamic_size_ && count > size_)
    TAGFLOW_RETURN_IF_ERROR(grow_locked(context, count - 1));
  if (exactly ? count != size_ : count > size_)
    return fail(context, "{} elements are wanted, the size is {}{}", count,
                size_, dynamic_size_ ? "" : " and cannot grow");
  // What a gradient array has of a split is that of its forward array.
  if (exactly && !is_gradient()) split_size_ = count;
  return {};
}

Result<PartialShape> TensorArray::agree_on_shape(const KernelContext& context,
                                                 const PartialShape& shape) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  auto merged = element_shape_.merge(shape);
  if (!merged.ok())
    return fail(context, "elements have the shape {}, not {}",
                element_shape_.to_string(), shape.to_string());
  element_shape_ = *merged;
  shape_is_open_ = shape_is_open_ && !element_shape_.fully_known();
  return element_shape_;
}

// --- Reading ----------------------------------------------------------------

Result<Tensor> TensorArray::dims_tensor(const Shape& shape) {
  TAGFLOW_ASSIGN(Tensor dims,
                 Tensor::allocate(DataType::kInt64, {shape.rank()}));
  std::ranges::copy(shape.dims(), dims.mutable_data<int64_t>());
  return dims;
}

bool TensorArray::has_value_locked(size_t at) const {
  return values_[at].valid() && (flags_[at] & kShape) == 0;
}

// The known shape of one element.
PartialShape TensorArray::shape_locked(size_t at) const {
  const Tensor& value = values_[at];
  if (!value.valid()) return element_shape_;
  if ((flags_[at] & kShape) != 0) return PartialShape(value.flat<int64_t>());
  return value.shape();
}

Result<Tensor> TensorArray::read(const KernelContext& context, int64_t index) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  return read_locked(context, index);
}

Result<std::vector<Tensor>> TensorArray::read_many(
    const KernelContext& context, std::span<const int32_t> indices) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  std::vector<Tensor> values;
  values.reserve(indices.size());
  for (const int32_t index : indices) {
    TAGFLOW_ASSIGN(Tensor value, read_locked(context, index));
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::vector<Tensor>> TensorArray::read_all(
    const KernelContext& context) {
  std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_open(context));
  // The gradient of what was split has no more than that.
  const bool is_of_split = is_gradient() && split_size_ > 0;
  const int64_t count = is_of_split ? split_size_ : size_;
  std::vector<Tensor> values;
  values.reserve(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    TAGFLOW_ASSIGN(Tensor value, read_locked(context, i));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Tensor> TensorArray::read_locked(const KernelContext& context,
                                        int64_t index) {
  if (index < 0 || index >= size_)
    return fail(context, "cannot read index {}, the size is {}", index, size_);
  if (index >= int64_t(values_.size()))
    TAGFLOW_RETURN_IF_ERROR(grow_locked(context, index));
  const auto at = size_t(index);
  if ((flags_[at] & kCleared) != 0)
    return fail(context,
                "cannot read index {} a second time, the first read cleared "
                "it: see clear_after_read",
                index);
  Tensor& value = values_[at];
  if (!has_value_locked(at)) [[unlikely]] {
    const auto shape = shape_locked(at).to_shape();
    if (!shape)
      return fail(context,
                  "nothing was written to index {}, and the shape {} does not "
                  "say what zeros to read",
                  index, element_shape_.to_string());
    if (!is_numeric(options_.dtype) && options_.dtype != DataType::kBool)
      return fail(context,
                  "nothing was written to index {}, and type {} has no zeros",
                  index, dtype_name(options_.dtype));
    TAGFLOW_ASSIGN(value, make_zeros(context, options_.dtype, *shape));
    flags_[at] &= ~kShape;
  }
  flags_[at] |= kWritten | kRead;
  if (!options_.clear_after_read) return value;
  Tensor result = std::move(value);
  flags_[at] |= kCleared;
  if (!element_shape_.fully_known()) {
    TAGFLOW_ASSIGN(value, dims_tensor(result.shape()));
    flags_[at] |= kShape;
  }
  return result;
}

}  // namespace tagflow::devices
