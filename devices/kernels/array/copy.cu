// Kernels that move elements without reading their values.
#include "devices/cuda/device_code.cuh"

namespace tagflow::devices::cuda {
namespace {

template <class T>
__global__ void copy_kernel(const __grid_constant__ CopyArgs args) {
  const T* const from = elements_of<T>(args.from) + args.from_offset;
  T* const to = static_cast<T*>(args.to);
  for (int64_t i = first_index(); i < args.total; i += index_step()) {
    int64_t index = i, in = 0, out = 0;
    for (int d = args.loops - 1; d >= 0; --d) {
      const Quotient at = divide(index, args.counts[d]);
      in += at.remainder * args.from_strides[d];
      out += at.remainder * args.to_strides[d];
      index = at.quotient;
    }
    to[out] = from[in];
  }
}

template <class T, class Index>
__global__ void gather_kernel(const __grid_constant__ GatherArgs args) {
  const T* const params = elements_of<T>(args.params);
  const Index* const indices = elements_of<Index>(args.indices);
  T* const out = static_cast<T*>(args.out);
  const int64_t total = args.outer * args.count * args.slice;
  for (int64_t i = first_index(); i < total; i += index_step()) {
    const Quotient in_slice = divide(i, args.slice);
    const Quotient in_part = divide(in_slice.quotient, args.count);
    const int64_t batch = divide(in_part.quotient, args.repeat).quotient;
    const int64_t index = indices[batch * args.count + in_part.remainder];
    T value{};
    if (index >= 0 && index < args.limit)
      value = params[(in_part.quotient * args.limit + index) * args.slice +
                     in_slice.remainder];
    out[i] = value;
  }
}

}  // namespace

cudaError_t copy_strided(const CopyArgs& args, size_t size,
                         cudaStream_t stream) {
  return with_size(size, [&](auto zero) {
    using T = decltype(zero);
    copy_kernel<T><<<blocks_for(args.total), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

cudaError_t gather(const GatherArgs& args, size_t size, cudaStream_t stream) {
  return with_size(size, [&](auto zero) {
    using T = decltype(zero);
    const dim3 blocks = blocks_for(args.outer * args.count * args.slice);
    if (args.wide_indices) {
      gather_kernel<T, int64_t><<<blocks, kThreads, 0, stream>>>(args);
    } else {
      gather_kernel<T, int32_t><<<blocks, kThreads, 0, stream>>>(args);
    }
    return cudaGetLastError();
  });
}

}  // namespace tagflow::devices::cuda
