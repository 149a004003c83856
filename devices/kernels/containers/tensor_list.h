// TensorList: the value in the variants of the TensorList ops.
#pragma once

#include <string>
#include <vector>

#include "devices/kernels/containers/variant_arithmetic.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// A list of tensors of one type. A kernel changes a list in place only if
// nobody else holds it (changed_value_output()).
class TensorList final : public ArithmeticValue {
 public:
  TensorList(DataType type, PartialShape shape)
      : dtype(type), element_shape(std::move(shape)) {}
  TensorList(const TensorList& other);
  ~TensorList() override;

  // "TensorList[3] of float".
  std::string describe() const override;
  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const override;
  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const override;

  // The number of elements that copies of lists have copied since the program
  // began: tests check in-place changes with it. Thread-safe.
  static int64_t elements_copied();

  size_t own_bytes() const override {
    return sizeof(*this) + elements.capacity() * sizeof(Tensor);
  }
  // Makes room for `size` elements. ResourceExhausted if they would exceed the
  // limit of the memory.
  Status reserve(const KernelContext& context, int64_t size);
  // As reserve(), and sets the number of elements.
  Status resize(const KernelContext& context, int64_t size);
  int64_t size() const { return int64_t(elements.size()); }
  // The approximate bytes of all elements, estimated from one of them.
  double estimated_bytes() const;

  DataType dtype;
  PartialShape element_shape;    // every element matches it
  int64_t max_size = -1;         // the limit for pushes; -1: none
  std::vector<Tensor> elements;  // invalid if not set
};

// The list of an input. InvalidArgument if it is something else.
Result<const TensorList*> list_input(const KernelContext& context, int input);
// The list of an input, whose elements must be of that type.
Result<const TensorList*> list_input(const KernelContext& context, int input,
                                     DataType dtype);

// The estimated bytes of the list of input 0, for the cost of kernels that
// move all elements. 0 if it is not a list.
double list_bytes(const KernelContext& context);

// ResourceExhausted if a list would be longer than kMaxContainerElements.
Status check_list_size(const KernelContext& context, int64_t size);

// The element shape of the list merged with the shape in an input.
Result<PartialShape> element_shape_of(const KernelContext& context,
                                      const TensorList& list, int input);
// `shape` merged with those of all elements that are set.
Result<PartialShape> merge_element_shapes(const KernelContext& context,
                                          std::span<const Tensor> elements,
                                          PartialShape shape);

}  // namespace tagflow::devices
