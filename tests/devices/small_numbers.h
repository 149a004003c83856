// Small integers as elements, whose sums are exact in any order.
#pragma once

#include "graph/tensor.h"

namespace tagflow::devices {

// A tensor of integers from -5 to 5, by the seed; `dtype` is float or double.
inline Tensor numbers(DataType dtype, const Shape& shape, int seed) {
  Tensor tensor = Tensor::make(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto value = int((i + seed) * 7 % 11) - 5;
    if (dtype == DataType::kFloat)
      tensor.mutable_data<float>()[i] = float(value);
    else
      tensor.mutable_data<double>()[i] = value;
  }
  return tensor;
}

}  // namespace tagflow::devices
