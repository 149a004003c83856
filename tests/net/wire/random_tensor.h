// Tensors of random bits, of all dtypes that may leave a process.
#pragma once

#include <random>
#include <string>

#include "graph/tensor.h"

namespace tagflow::net {

inline constexpr DataType kSentTypes[] = {
    DataType::kFloat,   DataType::kDouble,    DataType::kInt32,
    DataType::kUInt8,   DataType::kInt16,     DataType::kInt8,
    DataType::kString,  DataType::kComplex64, DataType::kInt64,
    DataType::kBool,    DataType::kQInt8,     DataType::kQUInt8,
    DataType::kQInt32,  DataType::kBFloat16,  DataType::kQInt16,
    DataType::kQUInt16, DataType::kUInt16,    DataType::kComplex128,
    DataType::kHalf,    DataType::kUInt32,    DataType::kUInt64};

inline std::string random_text(std::mt19937_64& random) {
  std::string text(random() % 2 == 0 ? random() % 4 : random() % 300, '\0');
  for (char& c : text) c = char(random());
  return text;
}

inline Tensor random_tensor(std::mt19937_64& random, DataType dtype,
                            const Shape& shape) {
  Tensor tensor = Tensor::make(dtype, shape);
  if (dtype == DataType::kString) {
    for (std::string& text : tensor.mutable_flat<std::string>())
      text = random_text(random);
    return tensor;
  }
  auto* bytes = static_cast<char*>(tensor.mutable_raw());
  for (size_t i = 0; i < tensor.bytes(); ++i)
    bytes[i] = char(dtype == DataType::kBool ? random() % 2 : random());
  return tensor;
}

// Of any dtype, with a few elements, or none.
inline Tensor random_tensor(std::mt19937_64& random) {
  Shape shape;
  for (auto rank = random() % 4; rank > 0; --rank)
    shape.add_dim(int64_t(random() % 5));
  return random_tensor(random, kSentTypes[random() % std::size(kSentTypes)],
                       shape);
}

}  // namespace tagflow::net
