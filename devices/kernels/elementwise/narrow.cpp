#include "devices/kernels/elementwise/narrow.h"

namespace tagflow::devices {

namespace {

// Eigen's conversions are vectorised; compilers do not vectorise ours.
template <class To, class From>
void convert(const From* x, To* z, int64_t n) {
  using Source = Eigen::Map<const Eigen::Array<From, Eigen::Dynamic, 1>>;
  using Target = Eigen::Map<Eigen::Array<To, Eigen::Dynamic, 1>>;
  Target(z, n) = Source(x, n).template cast<To>();
}

}  // namespace

void widen(const Half* x, float* z, int64_t n) { convert(x, z, n); }
void widen(const BFloat16* x, float* z, int64_t n) { convert(x, z, n); }
void narrow(const float* x, Half* z, int64_t n) { convert(x, z, n); }
void narrow(const float* x, BFloat16* z, int64_t n) { convert(x, z, n); }

}  // namespace tagflow::devices
