// Sets of types that ops of several families use, for "T: {...}".
#pragma once

#include <fmt/format.h>

#include <string>

namespace tagflow::graph {

inline constexpr char kFloating[] = "bfloat16, half, float, double";
inline constexpr char kInexact[] =
    "bfloat16, half, float, double, complex64, complex128";
inline constexpr char kInteger[] =
    "int8, int16, int32, int64, uint8, uint16, uint32, uint64";
inline constexpr char kReal[] =
    "bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
    "uint32, uint64";
// Signed number types.
inline constexpr char kSigned[] =
    "bfloat16, half, float, double, int8, int16, int32, int64, complex64, "
    "complex128";
inline constexpr char kSignedReal[] =
    "bfloat16, half, float, double, int8, int16, int32, int64";
inline constexpr char kNumber[] =
    "bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
    "uint32, uint64, complex64, complex128";
inline constexpr char kModulo[] = "int32, int64, bfloat16, half, float, double";

// The attribute T of one of the types.
inline std::string type_set(const char* types) {
  return fmt::format("T: {{{}}}", types);
}

}  // namespace tagflow::graph
