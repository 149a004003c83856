// The element types of tensors, with TensorFlow's numbers.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph/status.h"

// Incomplete here, since Eigen's headers take long to compile. What computes
// with these types includes graph/float16.h.
namespace Eigen {
struct half;
struct bfloat16;
}  // namespace Eigen

namespace tagflow {

using Half = Eigen::half;
using BFloat16 = Eigen::bfloat16;
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

// The numbers are GraphDef's. A reference type (`float_ref`, a handle to a
// variable's storage) is the number plus kRefOffset; see is_ref().
enum class DataType : uint8_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
};

inline constexpr uint8_t kRefOffset = 100;

inline bool is_ref(DataType t) { return uint8_t(t) > kRefOffset; }
inline DataType make_ref(DataType t) {
  return is_ref(t) ? t : DataType(uint8_t(t) + kRefOffset);
}
inline DataType remove_ref(DataType t) {
  return is_ref(t) ? DataType(uint8_t(t) - kRefOffset) : t;
}

// True for the types of the enum above and their references.
bool is_known(DataType t);
// GraphDef's name: "float", "int32", "bfloat16", "float_ref", ...
std::string dtype_name(DataType t);
// The type with this name; also accepts "DT_FLOAT", "float32", "float64",
// "float16", "complex". InvalidArgument for any other name.
Result<DataType> dtype_from_name(std::string_view name);
// Bytes of one element in memory; 0 for kInvalid. For strings and handles, the
// size of the C++ object that a buffer holds for each element.
size_t dtype_size(DataType t);

bool is_floating(DataType t);  // half, bfloat16, float, double
bool is_integer(DataType t);   // signed and unsigned, 8 to 64 bits
bool is_complex(DataType t);
// Floating, integer or complex.
bool is_numeric(DataType t);
// Elements can be copied as bytes: all but string, resource and variant.
inline bool is_plain(DataType t) {
  return t != DataType::kString && t != DataType::kResource &&
         t != DataType::kVariant;
}

class ResourceHandle;  // graph/handle.h
class Variant;         // graph/handle.h

// DataTypeOf<float>::value == DataType::kFloat, for each C++ element type.
template <class T>
struct DataTypeOf;

#define TAGFLOW_DTYPE_OF(T, E)                     \
  template <>                                      \
  struct DataTypeOf<T> {                           \
    static constexpr DataType value = DataType::E; \
  };
TAGFLOW_DTYPE_OF(float, kFloat)
TAGFLOW_DTYPE_OF(double, kDouble)
TAGFLOW_DTYPE_OF(Half, kHalf)
TAGFLOW_DTYPE_OF(BFloat16, kBFloat16)
TAGFLOW_DTYPE_OF(int8_t, kInt8)
TAGFLOW_DTYPE_OF(int16_t, kInt16)
TAGFLOW_DTYPE_OF(int32_t, kInt32)
TAGFLOW_DTYPE_OF(int64_t, kInt64)
TAGFLOW_DTYPE_OF(uint8_t, kUInt8)
TAGFLOW_DTYPE_OF(uint16_t, kUInt16)
TAGFLOW_DTYPE_OF(uint32_t, kUInt32)
TAGFLOW_DTYPE_OF(uint64_t, kUInt64)
TAGFLOW_DTYPE_OF(bool, kBool)
TAGFLOW_DTYPE_OF(Complex64, kComplex64)
TAGFLOW_DTYPE_OF(Complex128, kComplex128)
TAGFLOW_DTYPE_OF(std::string, kString)
TAGFLOW_DTYPE_OF(ResourceHandle, kResource)
TAGFLOW_DTYPE_OF(Variant, kVariant)
#undef TAGFLOW_DTYPE_OF

template <class T>
inline constexpr DataType kDataTypeOf = DataTypeOf<T>::value;

}  // namespace tagflow
