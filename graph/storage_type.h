// The plain types that store quantized numbers.
#pragma once

#include "graph/dtype.h"

namespace tagflow {

// The integers with the same bytes as a quantized type: int8 for qint8, ...
// Any other type itself. Thread-safe.
inline DataType storage_type(DataType dtype) {
  switch (dtype) {
    case DataType::kQInt8:
      return DataType::kInt8;
    case DataType::kQUInt8:
      return DataType::kUInt8;
    case DataType::kQInt16:
      return DataType::kInt16;
    case DataType::kQUInt16:
      return DataType::kUInt16;
    case DataType::kQInt32:
      return DataType::kInt32;
    default:
      return dtype;
  }
}

}  // namespace tagflow
