// Softmax, cross entropies and the positions of extremes: a block for each row.
#include "devices/cuda/block.cuh"

namespace tagflow::devices::cuda {
namespace {

template <class T>
__global__ void softmax_kernel(const __grid_constant__ SoftmaxArgs args) {
  using W = Wide<T>;
  __shared__ W shared[kThreads];
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* const in = static_cast<const T*>(args.in) + row * args.classes;
    T* const out = static_cast<T*>(args.out) + row * args.classes;
    W best = widen(in[0]);
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x)
      best = larger(best, widen(in[i]));
    best = combine_block(best, shared, [](W a, W b) { return larger(a, b); });
    W sum = 0;
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x)
      sum += exp(widen(in[i]) - best);
    sum = combine_block(sum, shared, [](W a, W b) { return a + b; });
    // Every thread has read the others' elements that it needs, so `out` may be
    // `in`.
    const W log_sum = args.logarithm ? log(sum) : W(0);
    const W factor = W(1) / sum;
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) {
      const W shifted = widen(in[i]) - best;
      out[i] =
          narrow<T>(args.logarithm ? shifted - log_sum : exp(shifted) * factor);
    }
  }
}

// The class of a row; negative if it does not exist.
__device__ int64_t class_of(const CrossEntropyArgs& args, int64_t row) {
  const int64_t label = args.wide_labels
                            ? elements_of<int64_t>(args.labels)[row]
                            : int64_t(elements_of<int32_t>(args.labels)[row]);
  return label < args.classes ? label : -1;
}

template <class T>
__global__ void cross_entropy_kernel(
    const __grid_constant__ CrossEntropyArgs args) {
  using W = Wide<T>;
  __shared__ W shared[kThreads];
  const auto plus = [](W a, W b) { return a + b; };
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* const logits =
        static_cast<const T*>(args.logits) + row * args.logits_row;
    const auto logit = [&](int64_t i) {
      return widen(logits[i * args.logits_column]);
    };
    W best = logit(0);
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x)
      best = larger(best, logit(i));
    best = combine_block(best, shared, [](W a, W b) { return larger(a, b); });
    W sum = 0;
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x)
      sum += exp(logit(i) - best);
    sum = combine_block(sum, shared, plus);
    const W log_sum = log(sum);
    const int64_t wanted = args.sparse ? class_of(args, row) : 0;
    const auto label = [&](int64_t i) {
      if (args.sparse) return wanted < 0 ? W(NAN) : W(i == wanted);
      return widen(elements_of<T>(
          args.labels)[row * args.labels_row + i * args.labels_column]);
    };
    T* const gradient = static_cast<T*>(args.gradient) + row * args.classes;
    W loss = 0;
    for (int64_t i = threadIdx.x; i < args.classes; i += blockDim.x) {
      const W shifted = logit(i) - best, wants = label(i);
      // Other classes add nothing, even if their logit is -inf.
      loss += args.sparse && i != wanted && wanted >= 0
                  ? W(0)
                  : wants * (log_sum - shifted);
      gradient[i] = narrow<T>(exp(shifted) / sum - wants);
    }
    loss = combine_block(loss, shared, plus);
    if (threadIdx.x == 0) static_cast<T*>(args.loss)[row] = narrow<T>(loss);
  }
}

// An element and its position; none if the position is negative.
template <class W>
struct Candidate {
  W value;
  int64_t at;
};

// The better one; the first of two equal ones. NaN is never better.
template <class W>
__device__ Candidate<W> better(Candidate<W> a, Candidate<W> b, bool least) {
  if (a.at < 0) return b;
  if (b.at < 0) return a;
  if (a.value == b.value) return a.at < b.at ? a : b;
  return (least ? b.value < a.value : b.value > a.value) ? b : a;
}

template <class T>
__global__ void arg_kernel(const __grid_constant__ ArgArgs args) {
  using W = Wide<T>;
  __shared__ Candidate<W> shared[kThreads];
  const bool least = args.least;
  for (int64_t row = blockIdx.x; row < args.outer * args.inner;
       row += gridDim.x) {
    const Quotient at = divide(row, args.inner);
    const T* const in = static_cast<const T*>(args.in) +
                        at.quotient * args.count * args.inner + at.remainder;
    Candidate<W> best{W(0), -1};
    for (int64_t i = threadIdx.x; i < args.count; i += blockDim.x) {
      const W value = widen(in[i * args.inner]);
      if (value == value) best = better(best, Candidate<W>{value, i}, least);
    }
    best = combine_block(best, shared, [=](Candidate<W> a, Candidate<W> b) {
      return better(a, b, least);
    });
    if (threadIdx.x != 0) continue;
    const int64_t found = best.at < 0 ? 0 : best.at;
    if (args.wide_result) {
      static_cast<int64_t*>(args.out)[row] = found;
    } else {
      static_cast<int32_t*>(args.out)[row] = int32_t(found);
    }
  }
}

dim3 one_block_each(int64_t rows) {
  return dim3(unsigned(rows < kMostBlocks ? rows : kMostBlocks));
}

}  // namespace

cudaError_t softmax(Element type, const SoftmaxArgs& args,
                    cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    softmax_kernel<T><<<one_block_each(args.rows), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

cudaError_t cross_entropy(Element type, const CrossEntropyArgs& args,
                          cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    cross_entropy_kernel<T>
        <<<one_block_each(args.rows), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

cudaError_t arg_extreme(Element type, const ArgArgs& args,
                        cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    arg_kernel<T>
        <<<one_block_each(args.outer * args.inner), kThreads, 0, stream>>>(
            args);
    return cudaGetLastError();
  });
}

}  // namespace tagflow::devices::cuda
