// Makes and uses tensor lists in tests.
#pragma once

#include "devices/kernels/containers/tensor_list.h"
#include "tests/devices/one_step.h"

namespace tagflow::devices {

inline const Tensor kAnyShape = Tensor::scalar(-1);

inline Tensor int_vector(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

inline Tensor one_of(const Result<Outputs>& outputs) {
  INFO(outputs.status().to_string());
  REQUIRE(outputs.ok());
  return (*outputs)[0];
}

inline AttrMap of_type(DataType dtype) { return {{"element_dtype", dtype}}; }

inline Tensor empty_list(DataType dtype, const Tensor& shape = kAnyShape,
                         int max_size = -1) {
  return one_of(run_op("EmptyTensorList", {shape, Tensor::scalar(max_size)},
                       of_type(dtype)));
}

inline Tensor reserved(int size, DataType dtype,
                       const Tensor& shape = kAnyShape) {
  return one_of(run_op("TensorListReserve", {shape, Tensor::scalar(size)},
                       of_type(dtype)));
}

inline Result<Outputs> push(const Tensor& list, const Tensor& element) {
  return run_op("TensorListPushBack", {list, element});
}
inline Result<Outputs> pop(const Tensor& list, DataType dtype,
                           const Tensor& shape = kAnyShape) {
  return run_op("TensorListPopBack", {list, shape}, of_type(dtype));
}
inline Result<Outputs> set_item(const Tensor& list, int index,
                                const Tensor& element, bool resize = false) {
  return run_op("TensorListSetItem", {list, Tensor::scalar(index), element},
                {{"resize_if_index_out_of_bounds", resize}});
}
inline Result<Outputs> get_item(const Tensor& list, int index, DataType dtype,
                                const Tensor& shape = kAnyShape) {
  return run_op("TensorListGetItem", {list, Tensor::scalar(index), shape},
                of_type(dtype));
}
inline Result<Outputs> stack(const Tensor& list, DataType dtype,
                             const Tensor& shape = kAnyShape, int count = -1) {
  return run_op("TensorListStack", {list, shape},
                {{"element_dtype", dtype}, {"num_elements", int64_t(count)}});
}
inline Result<Outputs> gather(const Tensor& list, const Tensor& indices,
                              DataType dtype, const Tensor& shape = kAnyShape) {
  return run_op("TensorListGather", {list, indices, shape}, of_type(dtype));
}
inline Result<Outputs> from_tensor(const Tensor& tensor,
                                   const Tensor& shape = kAnyShape) {
  return run_op("TensorListFromTensor", {tensor, shape});
}
inline Result<Outputs> resize(const Tensor& list, int size) {
  return run_op("TensorListResize", {list, Tensor::scalar(size)});
}
inline Result<Outputs> scatter(const Tensor& tensor, const Tensor& indices,
                               int count, const Tensor& shape = kAnyShape) {
  return run_op("TensorListScatterV2",
                {tensor, indices, shape, Tensor::scalar(count)});
}
inline Result<Outputs> concat(const Tensor& list, DataType dtype,
                              const Tensor& shape = kAnyShape,
                              std::initializer_list<int64_t> leading = {}) {
  return run_op("TensorListConcatV2",
                {list, shape, Tensor::vector<int64_t>(leading)},
                of_type(dtype));
}
inline Result<Outputs> split(const Tensor& tensor,
                             std::initializer_list<int64_t> n,
                             const Tensor& shape = kAnyShape) {
  return run_op("TensorListSplit", {tensor, shape, Tensor::vector<int64_t>(n)});
}

inline int length(const Tensor& list) {
  return one_of(run_op("TensorListLength", {list})).scalar_value<int32_t>();
}

inline const TensorList& list_in(const Tensor& tensor) {
  return *tensor.data<Variant>()->get_if<TensorList>();
}

// A list of int32 scalars.
inline Tensor list_of(std::initializer_list<int32_t> values) {
  return one_of(from_tensor(int_vector(values)));
}

inline constexpr DataType kInt = DataType::kInt32;
inline constexpr Code kInvalid = Code::kInvalidArgument;

}  // namespace tagflow::devices
