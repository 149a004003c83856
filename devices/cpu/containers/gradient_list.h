// GradientList: the gradient of a list, of a TensorArray or of an optional.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "devices/cpu/containers/indexed_tensors.h"
#include "devices/cpu/containers/variant_arithmetic.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// The gradients of some elements, by their index. What has none has zeros; so
// an empty variant is the gradient of no element. One element is added or taken
// in constant time where nobody else holds the list.
class GradientList final : public GradientValue {
 public:
  GradientList() = default;
  GradientList(const GradientList& other);
  ~GradientList() override;

  // "GradientList of 3 elements".
  std::string describe() const override;
  int64_t copy_size() const override { return elements.size(); }
  Ref<GradientValue> copy() const override;
  Status accumulate(VariantSum& sum, const GradientValue& term) override;

  // Adds `value` to element `index`. InvalidArgument where that is of another
  // type or shape; ResourceExhausted where there are places for more than
  // kMaxContainerElements, that one included.
  Status add_element(VariantSum& sum, int64_t index, const Tensor& value);
  // Puts `value` in the place of element `index`. Errors as those of
  // add_element().
  Status put_element(VariantSum& sum, int64_t index, const Tensor& value);
  // The element; not valid where there is none.
  Tensor get(int64_t index) const;

  // How many elements copies of lists have taken, since the program began: for
  // tests of what is changed in place. Thread-safe.
  static int64_t elements_copied();

  IndexedTensors elements;  // that have a gradient
};

// The list of input 0; null where that is an empty variant. InvalidArgument
// where it is something else.
Result<const GradientList*> gradient_list_input(const KernelContext& context);
// An input of numbers, of which none is negative: InvalidArgument calls one by
// `name`. They may have any shape, as TensorListGather takes such.
Result<std::span<const int32_t>> numbers_input(const KernelContext& context,
                                               int input,
                                               std::string_view name);
// Output 0, to be changed: the list of input 0 where nobody else holds it, else
// a copy. REQUIRES: gradient_list_input() gave no error.
Result<GradientList*> changed_gradient_list(KernelContext& context);

// An element of a type, or zeros where it is not valid, of the shape that an
// input says: an empty variant where the type is variant, whose shape nobody
// asks for. InvalidArgument where the element is another.
Result<Tensor> gradient_or_zeros(const KernelContext& context, Tensor element,
                                 DataType dtype, int shape_input);
// The shape of an element, as an input says it; a scalar's where the type is
// variant. InvalidArgument where the input says none.
Result<Shape> element_shape(const KernelContext& context, DataType dtype,
                            int shape_input);
// Estimated bytes of such an element.
double element_bytes(const KernelContext& context, DataType dtype,
                     int shape_input);
// The shape that an input says. InvalidArgument where it says none.
Result<Shape> full_shape_input(const KernelContext& context, int input);

}  // namespace tagflow::devices
