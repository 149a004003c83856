// AddN, AccumulateNV2: the sum of any number of tensors of one shape.
#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
class AddNKernel final : public Kernel {
 public:
  // AccumulateNV2 has an attribute with the shape of its inputs.
  explicit AddNKernel(const KernelInfo& info)
      : declared_(info.node().attrs().contains("shape")
                      ? attr_of<PartialShape>(info, "shape")
                      : PartialShape()) {}

  Status compute(KernelContext& context) const override {
    const auto inputs = context.inputs();
    TAGFLOW_RETURN_IF_ERROR(check_addends(context));
    if (declared_.has_rank() && !declared_.accepts(inputs[0].shape()))
      return context.fail("the inputs are of shape {}, not {}",
                          inputs[0].shape().to_string(), declared_.to_string());
    if (inputs.size() == 1) {
      context.set_output(0, context.input(0));
      return {};
    }
    if (inputs[0].is_inline_scalar()) {
      Accumulator sum = Accumulator(*inputs[0].data<T>());
      for (const Tensor& input : inputs.subspan(1))
        sum = Accumulator(sum + Accumulator(*input.data<T>()));
      context.set_output(0, Tensor::scalar(T(sum)));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, inputs[0].shape()));
    T* sums = out->mutable_data<T>();
    const double cost = 0.3 * double(inputs.size());
    context.parallel_for(
        inputs[0].num_elements(), cost, [&](int64_t begin, int64_t end) {
          for (; begin < end; begin += kChunk)
            add(inputs, sums, begin, std::min(end, begin + kChunk));
        });
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 0.3 * double(context.num_inputs()) *
           double(context.input(0).num_elements());
  }

 private:
  // 16-bit floats are added up in float and rounded once.
  using Accumulator =
      std::conditional_t<kIsNarrow<T>, float, decltype(wrap(T()))>;
  static constexpr int64_t kChunk = 1024;

  // Sums elements [begin, end), at most kChunk; `sums` may be the memory of
  // input 0.
  static void add(std::span<const Tensor> inputs, T* sums, int64_t begin,
                  int64_t end) {
    Accumulator chunk[kChunk];
    const size_t n = size_t(end - begin);
    const T* first = inputs[0].data<T>() + begin;
    for (size_t i = 0; i < n; ++i) chunk[i] = Accumulator(first[i]);
    for (const Tensor& input : inputs.subspan(1)) {
      const T* terms = input.data<T>() + begin;
      for (size_t i = 0; i < n; ++i) chunk[i] += Accumulator(terms[i]);
    }
    for (size_t i = 0; i < n; ++i) sums[begin + int64_t(i)] = T(chunk[i]);
  }

  const PartialShape declared_;
};

template <class... Ts>
void add_sum(KernelRegistry& registry, Types<Ts...>) {
  for (const char* op : {"AddN", "AccumulateNV2"})
    (add_kernel(registry, op, kDataTypeOf<Ts>, make_kernel<AddNKernel<Ts>>),
     ...);
}

}  // namespace

void register_sum_kernels(KernelRegistry& registry) {
  add_sum(registry, FloatingTypes());
  add_sum(registry, SignedIntegers());
  add_sum(registry, UnsignedIntegers());
  add_sum(registry, ComplexTypes());
}

}  // namespace tagflow::devices
