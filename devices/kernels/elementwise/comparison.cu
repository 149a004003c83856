// Functions of two operands with a bool result, and select.
#include "devices/kernels/elementwise/elementwise.cuh"

namespace tagflow::devices::cuda {
namespace {

#define TAGFLOW_COMPARISON(Name, expression)                              \
  template <class T>                                                      \
  struct Name {                                                           \
    static __device__ bool apply(T a, T b, double) { return expression; } \
  };
TAGFLOW_COMPARISON(Less, a < b)
TAGFLOW_COMPARISON(LessEqual, a <= b)
TAGFLOW_COMPARISON(Greater, a > b)
TAGFLOW_COMPARISON(GreaterEqual, a >= b)
TAGFLOW_COMPARISON(Equal, a == b)
TAGFLOW_COMPARISON(NotEqual, a != b)
TAGFLOW_COMPARISON(And, a&& b)
TAGFLOW_COMPARISON(Or, a || b)
#undef TAGFLOW_COMPARISON

template <template <class> class Op>
cudaError_t compare_numbers(Element type, const ElementwiseArgs& args,
                            cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_binary<Op<Wide<T>>, T, bool>(args, stream);
  });
}

template <template <class> class Op>
cudaError_t compare_any(Element type, const ElementwiseArgs& args,
                        cudaStream_t stream) {
  if (type == Element::kBool)
    return launch_binary<Op<bool>, bool, bool>(args, stream);
  return compare_numbers<Op>(type, args, stream);
}

template <class T>
__global__ void select_kernel(const __grid_constant__ ElementwiseArgs args) {
  const bool* const condition = elements_of<bool>(args.in[0]);
  const T* const x = elements_of<T>(args.in[1]);
  const T* const y = elements_of<T>(args.in[2]);
  T* const out = static_cast<T*>(args.out);
  for (int64_t i = first_index(); i < args.total; i += index_step()) {
    const Positions<3> from = positions_of<3>(args, i);
    out[i] = condition[from.at[0]] ? x[from.at[1]] : y[from.at[2]];
  }
}

}  // namespace

cudaError_t compare(Binary op, Element type, const ElementwiseArgs& args,
                    cudaStream_t stream) {
  switch (op) {
    case Binary::kLess:
      return compare_numbers<Less>(type, args, stream);
    case Binary::kLessEqual:
      return compare_numbers<LessEqual>(type, args, stream);
    case Binary::kGreater:
      return compare_numbers<Greater>(type, args, stream);
    case Binary::kGreaterEqual:
      return compare_numbers<GreaterEqual>(type, args, stream);
    case Binary::kEqual:
      return compare_any<Equal>(type, args, stream);
    case Binary::kNotEqual:
      return compare_any<NotEqual>(type, args, stream);
    case Binary::kAnd:
      return launch_binary<And<bool>, bool, bool>(args, stream);
    case Binary::kOr:
      return launch_binary<Or<bool>, bool, bool>(args, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t select(size_t size, const ElementwiseArgs& args,
                   cudaStream_t stream) {
  return with_size(size, [&](auto zero) {
    using T = decltype(zero);
    select_kernel<T><<<blocks_for(args.total), kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

}  // namespace tagflow::devices::cuda
