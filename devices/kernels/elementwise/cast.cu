// Casts, and sums of many terms.
#include <type_traits>

#include "devices/kernels/elementwise/elementwise.cuh"

namespace tagflow::devices::cuda {
namespace {

// Towards zero; the smallest number for NaN and values that do not fit.
template <class Int, class Real>
__device__ Int truncate(Real x) {
  constexpr Int kLeast = Int(Int(1) << (8 * sizeof(Int) - 1));
  const bool fits = x >= Real(kLeast) && x < -Real(kLeast);
  return fits ? Int(x) : kLeast;
}

template <class To, class From>
__device__ To convert(From x) {
  if constexpr (std::is_same<To, bool>::value) {
    return x != From(0);
  } else if constexpr (std::is_floating_point<From>::value &&
                       std::is_integral<To>::value) {
    if constexpr (sizeof(To) <= 4) {
      return To(truncate<int32_t>(x));
    } else {
      return To(truncate<int64_t>(x));
    }
  } else {
    return To(x);
  }
}

template <class From, class To>
struct Cast {
  static __device__ Wide<To> apply(Wide<From> x, double) {
    return convert<Wide<To>>(x);
  }
};

// Bits of a mantissa; 0 for types that are not floating.
template <class T>
constexpr int kMantissa = 0;
template <>
constexpr int kMantissa<double> = 52;
template <>
constexpr int kMantissa<float> = 23;
template <>
constexpr int kMantissa<Half> = 10;
template <>
constexpr int kMantissa<BFloat16> = 7;

// Whether a cast from this wide type can truncate bits.
template <class From, class To>
constexpr bool kCanTruncate =
    kMantissa<To> > 0 && kMantissa<From> > kMantissa<To>;

// Clears the bits of the mantissa that `To` cannot hold; see truncate_row() in
// elementwise/cast.h.
template <class To>
__device__ float cut_off(float x) {
  constexpr uint32_t kLost = (uint32_t(1) << (23 - kMantissa<To>)) - 1;
  return __uint_as_float(__float_as_uint(x) & ~kLost);
}
template <class To>
__device__ double cut_off(double x) {
  constexpr int64_t kLost = (int64_t(1) << (52 - kMantissa<To>)) - 1;
  return __longlong_as_double(__double_as_longlong(x) & ~kLost);
}

template <class From, class To>
struct TruncatingCast {
  static __device__ Wide<To> apply(Wide<From> x, double) {
    return Wide<To>(cut_off<To>(x));
  }
};

template <class F>
cudaError_t with_any(Element type, F&& f) {
  switch (type) {
    case Element::kBool:
      return f(bool());
    case Element::kInt8:
      return f(int8_t());
    case Element::kUInt8:
      return f(uint8_t());
    default:
      return with_number(type, f);
  }
}

template <class T>
__global__ void sum_kernel(const __grid_constant__ SumArgs args) {
  T* const out = static_cast<T*>(args.out);
  Wide<T>* const so_far = static_cast<Wide<T>*>(args.so_far);
  for (int64_t i = first_index(); i < args.total; i += index_step()) {
    auto sum = wrap(args.continues ? so_far[i]
                                   : widen(elements_of<T>(args.terms[0])[i]));
    for (int k = args.continues ? 0 : 1; k < args.count; ++k)
      sum += wrap(widen(elements_of<T>(args.terms[k])[i]));
    if (args.ends) {
      out[i] = narrow<T>(Wide<T>(sum));
    } else {
      so_far[i] = Wide<T>(sum);
    }
  }
}

}  // namespace

cudaError_t cast(Element from, Element to, bool truncates,
                 const ElementwiseArgs& args, cudaStream_t stream) {
  return with_any(from, [&](auto in) {
    return with_any(to, [&](auto out) {
      using From = decltype(in);
      using To = decltype(out);
      if constexpr (kCanTruncate<Wide<From>, To>) {
        if (truncates)
          return launch_unary<TruncatingCast<From, To>, From, To>(args, stream);
      }
      return launch_unary<Cast<From, To>, From, To>(args, stream);
    });
  });
}

cudaError_t sum_terms(Element type, const SumArgs& args, cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    sum_kernel<T><<<blocks_for(args.total), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

}  // namespace tagflow::devices::cuda
