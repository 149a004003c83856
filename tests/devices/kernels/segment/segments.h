// Rows to be reduced by segment, for the tests of all segment ops.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "graph/tensor.h"

namespace tagflow::devices {

inline const Tensor kData = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});

inline Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}
inline Tensor rows(int64_t count, std::initializer_list<float> values) {
  return Tensor::of<float>({count, 2}, values);
}

}  // namespace tagflow::devices
