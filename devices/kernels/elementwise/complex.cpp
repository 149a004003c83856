// Complex numbers: parts, conjugates, and construction from parts.
#include <complex>

#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
using Part = Elementwise<T, typename T::value_type>;

template <class T>
struct Real : Part<T> {
  static auto apply(T x) { return x.real(); }
};

template <class T>
struct Imag : Part<T> {
  static auto apply(T x) { return x.imag(); }
};

template <class T>
struct Magnitude : Part<T> {
  static constexpr double kCost = 3;
  static auto apply(T x) { return std::abs(x); }
};

template <class T>
struct Angle : Part<T> {
  static constexpr double kCost = 12;
  static auto apply(T x) { return std::arg(x); }
};

template <class T>
struct Conjugate : Elementwise<T> {
  static T apply(T x) { return std::conj(x); }
};

// T is the type of a part.
template <class T>
struct Complex : Elementwise<T, std::complex<T>> {
  static std::complex<T> apply(T real, T imag) { return {real, imag}; }
};

// For nodes with both types: "T" of the input and "Tout" of the output.
template <class K>
void add_for_types(KernelRegistry& registry, const char* op) {
  registry.add<K>(op, {{"T", {kDataTypeOf<typename K::In>}},
                       {"Tout", {kDataTypeOf<typename K::Out>}}});
}

template <class T>
void register_for(KernelRegistry& registry) {
  add_for_types<UnaryKernel<Real<T>>>(registry, "Real");
  add_for_types<UnaryKernel<Imag<T>>>(registry, "Imag");
  add_for_types<UnaryKernel<Angle<T>>>(registry, "Angle");
  add_for_types<UnaryKernel<Magnitude<T>>>(registry, "ComplexAbs");
  add_for_types<BinaryKernel<Complex<typename T::value_type>>>(registry,
                                                               "Complex");
}

}  // namespace

void register_complex_kernels(KernelRegistry& registry) {
  register_for<Complex64>(registry);
  register_for<Complex128>(registry);
  add_unary<Conjugate>(registry, "Conj", ComplexTypes());
}

}  // namespace tagflow::devices
