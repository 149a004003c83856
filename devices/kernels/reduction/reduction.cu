// Reductions along dimensions; devices/kernels/reduction/ops.h defines them.
// With many results, each thread computes one; otherwise one block, or several
// whose parts are combined at the end, compute a result.
#include <math_constants.h>

#include "devices/cuda/block.cuh"

namespace tagflow::devices::cuda {
namespace {

// Integer sums wrap around like their low bits in 64-bit sums.
template <class T>
struct AccumulatorOf {
  using type = Wide<T>;
};
template <>
struct AccumulatorOf<int32_t> {
  using type = uint64_t;
};
template <>
struct AccumulatorOf<int64_t> {
  using type = uint64_t;
};

template <class T>
struct Sum {
  using Acc = typename AccumulatorOf<T>::type;
  using Out = T;
  static __device__ Acc initial() { return Acc(0); }
  static __device__ Acc load(T value) { return Acc(widen(value)); }
  static __device__ Acc combine(Acc a, Acc b) { return a + b; }
  static __device__ T finish(Acc sum, int64_t) {
    return narrow<T>(Wide<T>(sum));
  }
};

template <class T>
struct Mean : Sum<T> {
  using Acc = typename Sum<T>::Acc;
  static __device__ T finish(Acc sum, int64_t count) {
    return narrow<T>(Wide<T>(sum / Acc(count)));
  }
};
// Towards zero; 0 for no elements.
template <>
__device__ int32_t Mean<int32_t>::finish(Acc sum, int64_t count) {
  return count == 0 ? 0 : int32_t(int64_t(sum) / count);
}
template <>
__device__ int64_t Mean<int64_t>::finish(Acc sum, int64_t count) {
  return count == 0 ? 0 : int64_t(sum) / count;
}

template <class T>
struct Product : Sum<T> {
  using Acc = typename Sum<T>::Acc;
  static __device__ Acc initial() { return Acc(1); }
  static __device__ Acc combine(Acc a, Acc b) { return a * b; }
};

template <class T>
struct HalfSquares : Sum<T> {
  using Acc = typename Sum<T>::Acc;
  static __device__ Acc load(T value) {
    return Acc(widen(value)) * Acc(widen(value));
  }
  static __device__ T finish(Acc sum, int64_t) {
    return narrow<T>(Wide<T>(sum / Acc(2)));
  }
};

template <class T>
struct Limits {
  static __device__ T lowest() { return -T(CUDART_INF); }
  static __device__ T highest() { return T(CUDART_INF); }
};
template <>
struct Limits<int32_t> {
  static __device__ int32_t lowest() { return INT32_MIN; }
  static __device__ int32_t highest() { return INT32_MAX; }
};
template <>
struct Limits<int64_t> {
  static __device__ int64_t lowest() { return INT64_MIN; }
  static __device__ int64_t highest() { return INT64_MAX; }
};

template <class T>
struct Max {
  using Acc = Wide<T>;
  using Out = T;
  static __device__ Acc initial() { return Limits<Acc>::lowest(); }
  static __device__ Acc load(T value) { return widen(value); }
  static __device__ Acc combine(Acc a, Acc b) { return larger(a, b); }
  static __device__ T finish(Acc best, int64_t) { return narrow<T>(best); }
};

template <class T>
struct Min : Max<T> {
  using Acc = Wide<T>;
  static __device__ Acc initial() { return Limits<Acc>::highest(); }
  static __device__ Acc combine(Acc a, Acc b) { return smaller(a, b); }
};

struct All {
  using Acc = int;
  using Out = bool;
  static __device__ int initial() { return 1; }
  static __device__ int load(bool value) { return value ? 1 : 0; }
  static __device__ int combine(int a, int b) { return a & b; }
  static __device__ bool finish(int value, int64_t) { return value != 0; }
};
struct Any : All {
  static __device__ int initial() { return 0; }
  static __device__ int combine(int a, int b) { return a | b; }
};

// Elements are combined in short chains, and these in chains again: so rounding
// errors grow slowly with the number of elements, as on the CPU.
template <class Op>
class Chains {
 public:
  using Acc = typename Op::Acc;

  __device__ void add(Acc value) {
    short_ = Op::combine(short_, value);
    ++count_;
    if (count_ % kLength != 0) return;
    long_ = Op::combine(long_, short_);
    short_ = Op::initial();
    if (count_ % (kLength * kLength) != 0) return;
    longest_ = Op::combine(longest_, long_);
    long_ = Op::initial();
  }
  __device__ Acc result() const {
    return Op::combine(longest_, Op::combine(long_, short_));
  }

 private:
  static constexpr uint32_t kLength = 64;

  Acc short_ = Op::initial(), long_ = Op::initial(), longest_ = Op::initial();
  uint32_t count_ = 0;
};

__device__ int64_t offset_of(const Runs& runs, int64_t index) {
  int64_t sum = 0;
  for (int i = runs.count - 1; i >= 0; --i) {
    const Quotient at = divide(index, runs.sizes[i]);
    sum += at.remainder * runs.steps[i];
    index = at.quotient;
  }
  return sum;
}

// Each thread computes a result.
template <class Op, class T>
__global__ void reduce_threads(const __grid_constant__ ReductionArgs args) {
  const T* const in = static_cast<const T*>(args.in);
  T* const out = static_cast<T*>(args.out);
  for (int64_t k = first_index(); k < args.kept_count; k += index_step()) {
    const T* const base = in + offset_of(args.kept, k);
    Chains<Op> chains;
    for (int64_t r = 0; r < args.reduced_count; ++r)
      chains.add(Op::load(base[offset_of(args.reduced, r)]));
    out[k] = Op::finish(chains.result(), args.reduced_count);
  }
}

// Each block computes a part of a result: all of it if there is one part.
template <class Op, class T>
__global__ void reduce_blocks(const __grid_constant__ ReductionArgs args) {
  using Acc = typename Op::Acc;
  __shared__ Acc shared[kThreads];
  const T* const in = static_cast<const T*>(args.in);
  const int64_t length = (args.reduced_count + args.parts - 1) / args.parts;
  for (int64_t unit = blockIdx.x; unit < args.kept_count * args.parts;
       unit += gridDim.x) {
    const Quotient at = divide(unit, args.parts);
    const T* const base = in + offset_of(args.kept, at.quotient);
    const int64_t begin = at.remainder * length;
    const int64_t end = begin + length < args.reduced_count
                            ? begin + length
                            : args.reduced_count;
    Chains<Op> chains;
    for (int64_t r = begin + threadIdx.x; r < end; r += blockDim.x)
      chains.add(Op::load(base[offset_of(args.reduced, r)]));
    const Acc sum = combine_block(chains.result(), shared, [](Acc a, Acc b) {
      return Op::combine(a, b);
    });
    if (threadIdx.x != 0) continue;
    if (args.parts == 1) {
      static_cast<T*>(args.out)[unit] = Op::finish(sum, args.reduced_count);
    } else {
      static_cast<Acc*>(args.partial)[unit] = sum;
    }
  }
}

// Combines the parts of each result.
template <class Op, class T>
__global__ void join_parts(const __grid_constant__ ReductionArgs args) {
  using Acc = typename Op::Acc;
  const Acc* const partial = static_cast<const Acc*>(args.partial);
  for (int64_t k = first_index(); k < args.kept_count; k += index_step()) {
    Chains<Op> chains;
    for (int64_t part = 0; part < args.parts; ++part)
      chains.add(partial[k * args.parts + part]);
    static_cast<T*>(args.out)[k] =
        Op::finish(chains.result(), args.reduced_count);
  }
}

// Whether there are enough results, or few enough elements in each.
bool suits_threads(const ReductionArgs& args) {
  constexpr int64_t kFew = 32, kMany = 4096;
  return args.reduced_count <= kFew ||
         (!args.ends_reduced && args.kept_count >= kMany);
}

template <class Op, class T>
cudaError_t run(const ReductionArgs& args, cudaStream_t stream) {
  static_assert(sizeof(typename Op::Acc) <= kPartialBytes, "no room");
  if (suits_threads(args)) {
    reduce_threads<Op, T>
        <<<blocks_for(args.kept_count), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  }
  const int64_t units = args.kept_count * args.parts;
  const dim3 blocks(unsigned(units < kMostBlocks ? units : kMostBlocks));
  reduce_blocks<Op, T><<<blocks, kThreads, 0, stream>>>(args);
  const cudaError_t result = cudaGetLastError();
  if (result != cudaSuccess || args.parts == 1) return result;
  join_parts<Op, T><<<blocks_for(args.kept_count), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

template <template <class> class Op>
cudaError_t of_number(Element type, const ReductionArgs& args,
                      cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    return run<Op<T>, T>(args, stream);
  });
}

}  // namespace

bool has_reduction(Reduction op, Element type) {
  switch (op) {
    case Reduction::kAll:
    case Reduction::kAny:
      return type == Element::kBool;
    case Reduction::kHalfSquares:
      return is_floating(type);
    default:
      return is_floating(type) || is_integer(type);
  }
}

int64_t reduction_parts(const ReductionArgs& args) {
  constexpr int64_t kBlocks = 1024;  // enough to keep a GPU busy
  constexpr int64_t kLeast = 4096;   // elements that justify a block
  if (suits_threads(args)) return 1;
  const int64_t wanted = kBlocks / args.kept_count;
  const int64_t most = args.reduced_count / kLeast;
  const int64_t parts = wanted < most ? wanted : most;
  return parts < 1 ? 1 : parts;
}

cudaError_t reduce(Reduction op, Element type, const ReductionArgs& args,
                   cudaStream_t stream) {
  switch (op) {
    case Reduction::kSum:
      return of_number<Sum>(type, args, stream);
    case Reduction::kMean:
      return of_number<Mean>(type, args, stream);
    case Reduction::kProduct:
      return of_number<Product>(type, args, stream);
    case Reduction::kMax:
      return of_number<Max>(type, args, stream);
    case Reduction::kMin:
      return of_number<Min>(type, args, stream);
    case Reduction::kAll:
      return run<All, bool>(args, stream);
    case Reduction::kAny:
      return run<Any, bool>(args, stream);
    case Reduction::kHalfSquares:
      return with_floating(type, [&](auto zero) {
        using T = decltype(zero);
        return run<HalfSquares<T>, T>(args, stream);
      });
  }
  return cudaErrorInvalidValue;
}

}  // namespace tagflow::devices::cuda
