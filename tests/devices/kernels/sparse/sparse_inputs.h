// Inputs of the tests of sparse and ragged tensors.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "graph/tensor.h"

namespace tagflow::devices {

inline Tensor longs(std::initializer_list<int64_t> values) {
  return Tensor::vector<int64_t>(values);
}

// Indices of elements of a tensor of that rank.
inline Tensor places(int64_t rank, std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>({int64_t(values.size()) / rank, rank}, values);
}

inline Tensor floats(std::initializer_list<float> values) {
  return Tensor::vector<float>(values);
}

}  // namespace tagflow::devices
