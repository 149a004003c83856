#include "devices/kernels/containers/tensor_list.h"

#include <atomic>

#include "devices/counted_growth.h"
#include "devices/kernels/containers/values.h"
#include "devices/thread_activity.h"

namespace tagflow::devices {

namespace {

std::atomic<int64_t> copied{0};

}  // namespace

TensorList::TensorList(const TensorList& other)
    : ArithmeticValue(other),
      dtype(other.dtype),
      element_shape(other.element_shape),
      max_size(other.max_size),
      elements(other.elements) {
  copied.fetch_add(size(), std::memory_order_relaxed);
}

TensorList::~TensorList() {
  const FreedElements freed("list", elements.size());
  if (!is_plain(dtype)) release_nested(std::move(elements));
  elements.clear();
}

Status TensorList::reserve(const KernelContext& context, int64_t size) {
  MemoryCharge charge;
  TAGFLOW_RETURN_IF_ERROR(make_room(context, elements, size_t(size), charge,
                                    sizeof(*this),
                                    [this] { return describe(); }));
  if (charge.bytes() > 0) count_as(std::move(charge));
  return {};
}

Status TensorList::resize(const KernelContext& context, int64_t size) {
  TAGFLOW_RETURN_IF_ERROR(reserve(context, size));
  elements.resize(size_t(size));
  return {};
}

int64_t TensorList::elements_copied() {
  return copied.load(std::memory_order_relaxed);
}

std::string TensorList::describe() const {
  return fmt::format("TensorList[{}] of {}", size(), dtype_name(dtype));
}

double TensorList::estimated_bytes() const {
  if (elements.empty()) return 0;
  const Tensor& element =
      elements.front().valid() ? elements.front() : elements.back();
  const double bytes = element.valid() ? double(element.bytes()) : 0;
  return double(elements.size()) * (bytes + double(sizeof(Tensor)));
}

double list_bytes(const KernelContext& context) {
  const Tensor& tensor = context.input(0);
  if (tensor.dtype() != DataType::kVariant || !tensor.is_scalar()) return 0;
  const auto* list = value_as<TensorList>(*tensor.data<Variant>());
  return list == nullptr ? 0 : list->estimated_bytes();
}

Result<Variant> TensorList::zeros_like(const KernelContext& context,
                                       int depth) const {
  auto zeros = make_ref_counted<TensorList>(dtype, element_shape);
  TAGFLOW_RETURN_IF_ERROR(zeros->reserve(context, size()));
  for (const Tensor& element : elements) {
    TAGFLOW_ASSIGN(Tensor zero, zeros_like_tensor(context, element, depth + 1));
    zeros->elements.push_back(std::move(zero));
  }
  return Variant(std::move(zeros));
}

Result<Variant> TensorList::add(const KernelContext& context,
                                const VariantValue& other, int depth) const {
  const auto* list = dynamic_cast<const TensorList*>(&other);
  if (list == nullptr || list->dtype != dtype || list->size() != size())
    return context.fail("cannot add {} and {}", describe(), other.describe());
  auto shape = element_shape.merge(list->element_shape);
  if (!shape.ok())
    return context.fail("cannot add lists of elements of shapes {} and {}",
                        element_shape.to_string(),
                        list->element_shape.to_string());
  auto sum = make_ref_counted<TensorList>(dtype, std::move(*shape));
  TAGFLOW_RETURN_IF_ERROR(sum->reserve(context, size()));
  for (size_t i = 0; i < elements.size(); ++i) {
    TAGFLOW_ASSIGN(Tensor element, add_nested(context, elements[i],
                                              list->elements[i], depth + 1));
    sum->elements.push_back(std::move(element));
  }
  return Variant(std::move(sum));
}

Result<const TensorList*> list_input(const KernelContext& context, int input) {
  return value_input<TensorList>(context, input, "tensor list");
}

Result<const TensorList*> list_input(const KernelContext& context, int input,
                                     DataType dtype) {
  TAGFLOW_ASSIGN(const TensorList* list, list_input(context, input));
  if (list->dtype == dtype) return list;
  return context.fail("elements of {} are wanted, not of {}", dtype_name(dtype),
                      list->describe());
}

Status check_list_size(const KernelContext& context, int64_t size) {
  if (size <= kMaxContainerElements) return {};
  return error(Code::kResourceExhausted,
               "[{}] the list would have {} elements, more than {}",
               context.node().op(), size, kMaxContainerElements);
}

Result<PartialShape> element_shape_of(const KernelContext& context,
                                      const TensorList& list, int input) {
  TAGFLOW_ASSIGN(PartialShape shape,
                 shape_input(context, input, "element_shape"));
  auto merged = list.element_shape.merge(shape);
  if (merged.ok()) return merged;
  return context.fail("elements have the shape {}, not {}",
                      list.element_shape.to_string(), shape.to_string());
}

Result<PartialShape> merge_element_shapes(const KernelContext& context,
                                          std::span<const Tensor> elements,
                                          PartialShape shape) {
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& element = elements[i];
    if (!element.valid()) continue;
    if (!accepts_shape_of(shape, element))
      return context.fail("element {} is {}, others have the shape {}", i,
                          element.describe(), shape.to_string());
    // It fits, so its shape is that of both.
    if (!shape.fully_known()) shape = element.shape();
  }
  return shape;
}

}  // namespace tagflow::devices
