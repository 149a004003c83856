// GradientList: the gradient of a list, of a TensorArray or of an optional.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "devices/kernels/containers/indexed_tensors.h"
#include "devices/kernels/containers/variant_arithmetic.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// The gradients of some elements, by their index. A missing gradient counts as
// zeros; so an empty variant is a list without gradients. Adding or taking one
// element takes constant time if nobody else holds the list.
class GradientList final : public GradientValue {
 public:
  GradientList() = default;
  GradientList(const GradientList& other);
  ~GradientList() override;

  // "GradientList of 3 elements".
  std::string describe() const override;
  size_t own_bytes() const override {
    return sizeof(*this) - sizeof(elements) + elements.own_bytes();
  }
  int64_t copy_size() const override { return elements.size(); }
  Ref<GradientValue> copy() const override;
  Status accumulate(VariantSum& sum, const GradientValue& term) override;

  // Adds `value` to element `index`. InvalidArgument if `value` is of
  // another type or shape; ResourceExhausted if this would need places for
  // more than kMaxContainerElements.
  Status add_element(VariantSum& sum, int64_t index, const Tensor& value);
  // Replaces element `index` by `value`. The same errors as add_element().
  Status put_element(VariantSum& sum, int64_t index, const Tensor& value);
  // The element; not valid if it has no gradient.
  Tensor get(int64_t index) const;

  // The number of elements that copies of lists have copied since the program
  // began: tests check in-place changes with it. Thread-safe.
  static int64_t elements_copied();

  IndexedTensors elements;  // those that have a gradient
};

// The list of input 0; null if that is an empty variant. InvalidArgument
// if it is something else.
Result<const GradientList*> gradient_list_input(const KernelContext& context);
// An input of numbers, all >= 0; InvalidArgument otherwise, with `name`. They
// may have any shape, as TensorListGather accepts any.
Result<std::span<const int32_t>> numbers_input(const KernelContext& context,
                                               int input,
                                               std::string_view name);
// A writable output 0: the list of input 0 if nobody else holds it, else a
// copy. REQUIRES: gradient_list_input() gave no error.
Result<GradientList*> changed_gradient_list(KernelContext& context);

// The element, or zeros if it is not valid, of the shape that an input
// gives. For variants the zero is an empty variant, and the shape is not read.
// InvalidArgument if the element is of another type or shape.
Result<Tensor> gradient_or_zeros(const KernelContext& context, Tensor element,
                                 DataType dtype, int shape_input);
// The shape of an element that an input gives; a scalar's if the type is
// variant. InvalidArgument if the input gives no full shape.
Result<Shape> element_shape(const KernelContext& context, DataType dtype,
                            int shape_input);
// Estimated bytes of such an element.
double element_bytes(const KernelContext& context, DataType dtype,
                     int shape_input);
// The shape that an input gives. InvalidArgument if it is not fully known.
Result<Shape> full_shape_input(const KernelContext& context, int input);

}  // namespace tagflow::devices
