// Cooperation of the threads of a block.
#pragma once

#include "devices/cuda/device_code.cuh"

namespace tagflow::devices::cuda {

// Combines the values of all threads of the block, in an order that depends
// only on their number; every thread gets the same result. `shared` has
// kThreads elements. REQUIRES: every thread of the block calls it.
template <class T, class Combine>
__device__ T combine_block(T value, T* shared, Combine combine) {
  const int thread = int(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int count = int(blockDim.x); count > 1;) {
    const int half = (count + 1) / 2;
    if (thread < count - half)
      shared[thread] = combine(shared[thread], shared[thread + half]);
    __syncthreads();
    count = half;
  }
  const T result = shared[0];
  __syncthreads();  // before the next use of `shared`
  return result;
}

// NaN wins over everything.
template <class T>
__device__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
__device__ T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

}  // namespace tagflow::devices::cuda
