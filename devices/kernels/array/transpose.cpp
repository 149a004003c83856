// Transpose, ConjugateTranspose, InvertPermutation.
#include <numeric>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Input 1 as a permutation of the dimensions of input 0.
Status read_permutation(const KernelContext& context, Shape::Dims& perm) {
  const Tensor& input = context.input(0);
  TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "perm", perm));
  const auto rank = size_t(input.rank());
  bool valid = perm.size() == rank;
  boost::container::small_vector<bool, 8> seen(rank, false);
  for (size_t i = 0; valid && i < rank; ++i) {
    if (perm[i] < 0) perm[i] += int64_t(rank);
    valid = perm[i] >= 0 && perm[i] < int64_t(rank) && !seen[size_t(perm[i])];
    if (valid) seen[size_t(perm[i])] = true;
  }
  if (!valid)
    return context.fail("[{}] is not a permutation of the dimensions of {}",
                        fmt::join(perm, ","), input.describe());
  return {};
}

void conjugate(const KernelContext& context, Tensor& tensor) {
  visit_complex(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    T* values = tensor.mutable_data<T>();
    context.parallel_for(tensor.num_elements(), 1,
                         [values](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             values[i] = std::conj(values[i]);
                         });
  });
}

// Also ConjugateTranspose.
class TransposeKernel : public BytesKernel {
 public:
  explicit TransposeKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.3),
        conjugates_(info.node().op() == "ConjugateTranspose" &&
                    is_complex(info.output_dtype(0))) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Shape::Dims perm;
    TAGFLOW_RETURN_IF_ERROR(read_permutation(context, perm));
    Shape shape;
    // Elements stay in place if only dimensions of 1 move.
    bool moves = false;
    int64_t last = -1;
    for (int64_t from : perm) {
      shape.add_dim(input.dim(int(from)));
      if (input.dim(int(from)) == 1) continue;
      moves = moves || from < last;
      last = from;
    }
    if (!moves && !conjugates_) {
      TAGFLOW_ASSIGN(context.output(0), input.reshaped(shape));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const Shape input_shape = input.shape();
    const auto from = row_major_strides(input_shape.dims());
    const auto to = row_major_strides(shape.dims());
    StridedCopy copy;
    for (size_t i = 0; i < perm.size(); ++i)
      copy.add(shape.dim(int(i)), from[size_t(perm[i])], to[i]);
    strided_copy(context, std::move(copy), input, *output);
    if (conjugates_) conjugate(context, *output);
    return {};
  }

 private:
  bool conjugates_;
};

class InvertPermutationKernel : public BytesKernel {
 public:
  explicit InvertPermutationKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.5) {}
  Status compute(KernelContext& context) const override {
    if (context.input(0).dtype() == DataType::kInt32)
      return invert<int32_t>(context);
    return invert<int64_t>(context);
  }

 private:
  template <class T>
  static Status invert(KernelContext& context) {
    const Tensor& input = context.input(0);
    if (input.rank() != 1)
      return context.fail("x must be a vector, got {}", input.describe());
    const int64_t size = input.dim(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {size}));
    T* inverse = output->mutable_data<T>();
    context.for_blocks(size, 0.5, [&](int64_t begin, int64_t end) {
      std::fill(inverse + begin, inverse + end, T(-1));
    });
    const T* values = input.data<T>();
    for (int64_t i = 0; i < size; ++i) {
      context.check_cancelled();
      if (values[i] < 0 || int64_t(values[i]) >= size)
        return context.fail("x[{}] = {} is outside [0, {})", i, values[i],
                            size);
      if (inverse[values[i]] != T(-1))
        return context.fail("{} is twice in x", values[i]);
      inverse[values[i]] = T(i);
    }
    return {};
  }
};

}  // namespace

void register_array_transpose_kernels(KernelRegistry& registry) {
  registry.add<TransposeKernel>("Transpose");
  registry.add<TransposeKernel>("ConjugateTranspose");
  registry.add<InvertPermutationKernel>("InvertPermutation");
}

}  // namespace tagflow::devices
