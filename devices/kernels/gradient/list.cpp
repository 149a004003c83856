#include "devices/kernels/gradient/list.h"

#include <algorithm>
#include <atomic>

#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/elementwise.h"
#include "devices/tensor_rows.h"
#include "devices/thread_activity.h"

namespace tagflow::devices {

namespace {

std::atomic<int64_t> gradients_copied{0};

bool has_shape(const Tensor& tensor, const Tensor& shape) {
  if (shape.rank() != 1 || shape.dim(0) != tensor.rank()) return false;
  for (int i = 0; i < tensor.rank(); ++i)
    if (index_at(shape, i) != tensor.dim(i)) return false;
  return true;
}

}  // namespace

GradientList::GradientList(const GradientList& other)
    : GradientValue(other), elements(other.elements) {
  gradients_copied.fetch_add(copy_size(), std::memory_order_relaxed);
}

GradientList::~GradientList() {
  const FreedElements freed("list", size_t(elements.size()));
  elements.for_each_last([](int64_t, Tensor& element) {
    Tensor last = std::move(element);
    release_nested(std::move(last));
  });
}

int64_t GradientList::elements_copied() {
  return gradients_copied.load(std::memory_order_relaxed);
}

std::string GradientList::describe() const {
  return fmt::format("GradientList of {} element{}", elements.size(),
                     elements.size() == 1 ? "" : "s");
}

Ref<GradientValue> GradientList::copy() const {
  return make_ref_counted<GradientList>(*this);
}

Status GradientList::accumulate(VariantSum& sum, const GradientValue& term) {
  Status status;
  static_cast<const GradientList&>(term).elements.for_each(
      [&](int64_t index, const Tensor& value) {
        if (status.ok()) status = add_element(sum, index, value);
      });
  return status;
}

Status GradientList::add_element(VariantSum& sum, int64_t index,
                                 const Tensor& value) {
  if (is_zero_variant(value)) return {};
  const auto [element, is_new] = elements.try_emplace(index, value);
  if (is_new) {
    if (elements.places() <= kMaxContainerElements) return {};
    return error(Code::kResourceExhausted,
                 "[{}] the list would have places for more than {} elements",
                 sum.context().node().op(), kMaxContainerElements);
  }
  if (element->dtype() != value.dtype() || !same_dims(*element, value))
    return sum.context().fail("cannot add {} to element {}, which is {}",
                              value.describe(), index, element->describe());
  return sum.add(*element, value);
}

Status GradientList::put_element(VariantSum& sum, int64_t index,
                                 const Tensor& value) {
  release_nested(elements.take(index));
  return add_element(sum, index, value);
}

Tensor GradientList::get(int64_t index) const {
  const Tensor* element = elements.find(index);
  return element == nullptr ? Tensor() : *element;
}

Result<const GradientList*> gradient_list_input(const KernelContext& context) {
  if (is_zero_variant(context.input(0))) return nullptr;
  return value_input<GradientList>(context, 0, "gradient list");
}

Result<std::span<const int32_t>> numbers_input(const KernelContext& context,
                                               int input,
                                               std::string_view name) {
  const auto numbers = context.input(input).flat<int32_t>();
  for (const int32_t number : numbers)
    if (number < 0) return context.fail("{} {} is negative", name, number);
  return numbers;
}

Result<GradientList*> changed_gradient_list(KernelContext& context) {
  if (is_zero_variant(context.input(0)))
    return new_value_output<GradientList>(context, 0);
  return changed_value_output<GradientList>(context, 0, 0);
}

Result<Tensor> gradient_or_zeros(const KernelContext& context, Tensor element,
                                 DataType dtype, int shape_input) {
  const bool is_variant = dtype == DataType::kVariant;
  if (!element.valid()) {
    if (is_variant) return make_zeros(context, dtype, {});
    TAGFLOW_ASSIGN(const Shape shape, full_shape_input(context, shape_input));
    return make_zeros(context, dtype, shape);
  }
  const Tensor& shape = context.input(shape_input);
  if (element.dtype() == dtype && (is_variant || has_shape(element, shape)))
    return element;
  return context.fail("the element is {}, not {} of shape {}",
                      element.describe(), dtype_name(dtype), shape.to_string());
}

Result<Shape> element_shape(const KernelContext& context, DataType dtype,
                            int shape_input) {
  if (dtype == DataType::kVariant) return Shape();
  return full_shape_input(context, shape_input);
}

double element_bytes(const KernelContext& context, DataType dtype,
                     int shape_input) {
  const Tensor& shape = context.input(shape_input);
  double bytes = dtype == DataType::kVariant ? 8 : double(dtype_size(dtype));
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    bytes *= std::max(1.0, double(index_at(shape, i)));
  return bytes;
}

Result<Shape> full_shape_input(const KernelContext& context, int input) {
  TAGFLOW_ASSIGN(const PartialShape shape,
                 shape_input(context, input, "the shape"));
  if (auto known = shape.to_shape()) return *std::move(known);
  return context.fail("the shape must be known, not {}", shape.to_string());
}

}  // namespace tagflow::devices
