// Operations on the bits of integers.
#include <algorithm>

#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
struct BitAnd : Elementwise<T> {
  static T apply(T a, T b) { return T(a & b); }
};

template <class T>
struct BitOr : Elementwise<T> {
  static T apply(T a, T b) { return T(a | b); }
};

template <class T>
struct BitXor : Elementwise<T> {
  static T apply(T a, T b) { return T(a ^ b); }
};

template <class T>
struct BitNot : Elementwise<T> {
  static T apply(T a) { return T(~a); }
};

// The distance of a shift, limited to values defined for a T.
template <class T>
int shift_distance(T b) {
  return int(std::clamp(b, T(0), T(sizeof(T) * 8 - 1)));
}

template <class T>
struct ShiftLeft : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) << shift_distance(b)); }
};

// Keeps the sign.
template <class T>
struct ShiftRight : Elementwise<T> {
  static T apply(T a, T b) { return T(a >> shift_distance(b)); }
};

}  // namespace

void register_bitwise_kernels(KernelRegistry& registry) {
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  add_binary<BitAnd>(registry, "BitwiseAnd", integers, naturals);
  add_binary<BitOr>(registry, "BitwiseOr", integers, naturals);
  add_binary<BitXor>(registry, "BitwiseXor", integers, naturals);
  add_binary<ShiftLeft>(registry, "LeftShift", integers, naturals);
  add_binary<ShiftRight>(registry, "RightShift", integers, naturals);
  add_unary<BitNot>(registry, "Invert", integers, naturals);
}

}  // namespace tagflow::devices
