// Shared parts of the .cu files. Every kernel is a loop over a grid of any
// size, with blocks of any size: the number of threads affects only the speed.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "devices/cuda/kernels.h"

namespace tagflow::devices::cuda {

// The types of elements on the GPU.
using Half = __half;
using BFloat16 = __nv_bfloat16;

constexpr int kThreads = 256;          // per block
constexpr int64_t kMostBlocks = 4096;  // per grid

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The grid of blocks of kThreads for so many threads.
inline dim3 blocks_for(int64_t threads) {
  const int64_t blocks = ceil_divide(threads, kThreads);
  return dim3(unsigned(blocks < kMostBlocks ? blocks : kMostBlocks));
}

// This thread's number in the grid, and the number of threads.
__device__ inline int64_t first_index() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t index_step() {
  return int64_t(gridDim.x) * blockDim.x;
}

// index = quotient * count + remainder, for an index that is not negative and
// a positive count. 64-bit divisions take many times longer.
struct Quotient {
  int64_t quotient, remainder;
};
__device__ inline Quotient divide(int64_t index, int64_t count) {
  if (((index | count) >> 32) == 0) {
    const uint32_t a = uint32_t(index), b = uint32_t(count);
    const uint32_t q = a / b;
    return {int64_t(q), int64_t(a - q * b)};
  }
  const int64_t q = index / count;
  return {q, index - q * count};
}

// Element k of the operand.
template <class T>
__device__ inline const T* elements_of(const Operand& operand) {
  return static_cast<const T*>(operand.data != nullptr ? operand.data
                                                       : operand.value);
}

// The type in which elements of T are computed.
template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<Half> {
  using type = float;
};
template <>
struct WideOf<BFloat16> {
  using type = float;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
__device__ inline Wide<T> widen(T value) {
  return value;
}
template <>
__device__ inline float widen(Half value) {
  return __half2float(value);
}
template <>
__device__ inline float widen(BFloat16 value) {
  return __bfloat162float(value);
}

template <class T>
__device__ inline T narrow(Wide<T> value) {
  return value;
}
template <>
__device__ inline Half narrow<Half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline BFloat16 narrow<BFloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// Arithmetic of signed integers wraps around.
template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int8_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<uint8_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};
template <class T>
__device__ inline typename UnsignedOf<T>::type wrap(T value) {
  return static_cast<typename UnsignedOf<T>::type>(value);
}

// Calls f(T()) with the type of the elements.
template <class F>
cudaError_t with_floating(Element type, F&& f) {
  switch (type) {
    case Element::kFloat:
      return f(float());
    case Element::kDouble:
      return f(double());
    case Element::kHalf:
      return f(Half());
    case Element::kBFloat16:
      return f(BFloat16());
    default:
      return cudaErrorInvalidValue;
  }
}
template <class F>
cudaError_t with_integer(Element type, F&& f) {
  switch (type) {
    case Element::kInt32:
      return f(int32_t());
    case Element::kInt64:
      return f(int64_t());
    default:
      return cudaErrorInvalidValue;
  }
}
inline bool is_floating(Element type) { return type <= Element::kBFloat16; }
inline bool is_integer(Element type) {
  return type == Element::kInt32 || type == Element::kInt64;
}
template <class F>
cudaError_t with_number(Element type, F&& f) {
  return is_floating(type) ? with_floating(type, f) : with_integer(type, f);
}

// Calls f with a value of so many bytes, for kernels that only move elements.
struct alignas(16) Bytes16 {
  uint64_t words[2];
};
template <class F>
cudaError_t with_size(size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    case 16:
      return f(Bytes16());
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace tagflow::devices::cuda
