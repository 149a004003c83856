#include "graph/ops/index_values.h"

namespace tagflow::graph {

int64_t index_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DataType::kInt32:
      return tensor.data<int32_t>()[i];
    case DataType::kInt64:
      return tensor.data<int64_t>()[i];
    case DataType::kInt16:
      return tensor.data<int16_t>()[i];
    case DataType::kInt8:
      return tensor.data<int8_t>()[i];
    case DataType::kUInt8:
      return tensor.data<uint8_t>()[i];
    case DataType::kUInt16:
      return tensor.data<uint16_t>()[i];
    case DataType::kUInt32:
      return tensor.data<uint32_t>()[i];
    default:
      return 0;
  }
}

Shape::Dims index_elements(const Tensor& tensor) {
  Shape::Dims values;
  values.resize(size_t(tensor.num_elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = index_at(tensor, int64_t(i));
  return values;
}

}  // namespace tagflow::graph
