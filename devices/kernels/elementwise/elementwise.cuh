// The loop of all element-wise kernels.
#pragma once

#include "devices/cuda/device_code.cuh"

namespace tagflow::devices::cuda {

// The positions of the operands of an output element.
template <int kOperands>
struct Positions {
  int64_t at[kOperands];
};

template <int kOperands>
__device__ inline Positions<kOperands> positions_of(const ElementwiseArgs& args,
                                                    int64_t index) {
  Positions<kOperands> positions;
  if (args.loops == 0) {
    for (int k = 0; k < kOperands; ++k)
      positions.at[k] = index * args.strides[k][0];
    return positions;
  }
  for (int k = 0; k < kOperands; ++k) positions.at[k] = 0;
  for (int d = args.loops - 1; d >= 0; --d) {
    const Quotient step = divide(index, args.counts[d]);
    for (int k = 0; k < kOperands; ++k)
      positions.at[k] += step.remainder * args.strides[k][d];
    index = step.quotient;
  }
  return positions;
}

// out[i] = Op(...), computed in the wide types. Op has In and Out, the wide
// types of its operands and its result.
template <class Op, class T, class R>
__global__ void unary_kernel(const __grid_constant__ ElementwiseArgs args) {
  const T* const x = elements_of<T>(args.in[0]);
  R* const out = static_cast<R*>(args.out);
  for (int64_t i = first_index(); i < args.total; i += index_step())
    out[i] = narrow<R>(
        Op::apply(widen(x[positions_of<1>(args, i).at[0]]), args.parameter));
}

template <class Op, class T, class R>
__global__ void binary_kernel(const __grid_constant__ ElementwiseArgs args) {
  const T* const x = elements_of<T>(args.in[0]);
  const T* const y = elements_of<T>(args.in[1]);
  R* const out = static_cast<R*>(args.out);
  for (int64_t i = first_index(); i < args.total; i += index_step()) {
    const Positions<2> from = positions_of<2>(args, i);
    out[i] = narrow<R>(
        Op::apply(widen(x[from.at[0]]), widen(y[from.at[1]]), args.parameter));
  }
}

template <class Op, class T, class R>
cudaError_t launch_unary(const ElementwiseArgs& args, cudaStream_t stream) {
  unary_kernel<Op, T, R><<<blocks_for(args.total), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}
template <class Op, class T, class R>
cudaError_t launch_binary(const ElementwiseArgs& args, cudaStream_t stream) {
  binary_kernel<Op, T, R>
      <<<blocks_for(args.total), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace tagflow::devices::cuda
