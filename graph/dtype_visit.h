// Converts a DataType at run time to a C++ element type at compile time.
#pragma once

#include <string>

#include "graph/float16.h"

namespace tagflow {

template <class T>
struct TypeTag {
  using type = T;
};

namespace detail {

// Calls f(TypeTag<T>{}) for the T in the list whose DataType is t; returns
// false if there is none.
template <class... Ts, class F>
bool visit_among(DataType t, F&& f) {
  return ((t == kDataTypeOf<Ts> && (f(TypeTag<Ts>{}), true)) || ...);
}

}  // namespace detail

// Each calls f(TypeTag<T>{}) if t belongs to the group, and returns whether it
// does. Usage:
//   visit_numeric(t, [&]<class T>(TypeTag<T>) { sum<T>(in, out); });
template <class F>
bool visit_floating(DataType t, F&& f) {
  return detail::visit_among<float, double, Half, BFloat16>(t, f);
}
template <class F>
bool visit_integer(DataType t, F&& f) {
  return detail::visit_among<int32_t, int64_t, uint8_t, int8_t, int16_t,
                             uint16_t, uint32_t, uint64_t>(t, f);
}
// Floating and integer types, which can be ordered.
template <class F>
bool visit_real(DataType t, F&& f) {
  return visit_floating(t, f) || visit_integer(t, f);
}
template <class F>
bool visit_complex(DataType t, F&& f) {
  return detail::visit_among<Complex64, Complex128>(t, f);
}
template <class F>
bool visit_numeric(DataType t, F&& f) {
  return visit_real(t, f) || visit_complex(t, f);
}
// Numeric, bool and string.
template <class F>
bool visit_dtype(DataType t, F&& f) {
  return visit_numeric(t, f) || detail::visit_among<bool, std::string>(t, f);
}

// Calls f(TypeTag<U>{}) with an unsigned type of the same size, for kernels
// that only move elements of a plain type: uint8_t, uint16_t, uint32_t,
// uint64_t, or Complex128 for 16 bytes. Returns false for strings and handles.
template <class F>
bool visit_size(DataType t, F&& f) {
  if (!is_plain(t)) return false;
  switch (dtype_size(t)) {
    case 1:
      f(TypeTag<uint8_t>{});
      return true;
    case 2:
      f(TypeTag<uint16_t>{});
      return true;
    case 4:
      f(TypeTag<uint32_t>{});
      return true;
    case 8:
      f(TypeTag<uint64_t>{});
      return true;
    case 16:
      f(TypeTag<Complex128>{});
      return true;
    default:
      return false;
  }
}

}  // namespace tagflow
