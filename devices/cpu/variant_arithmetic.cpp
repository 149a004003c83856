// AddN and ZerosLike of variants.
#include "devices/cpu/variant_arithmetic.h"

#include "devices/cpu/array_copy.h"
#include "devices/cpu/container_kernels.h"
#include "devices/cpu/elementwise.h"
#include "devices/cpu/tensor_list.h"

namespace tagflow::devices {

namespace {

Status check_depth(const KernelContext& context, int depth) {
  if (depth <= kMaxVariantDepth) return {};
  return error(Code::kResourceExhausted,
               "[{}] values are nested deeper than {} levels",
               context.node().op(), kMaxVariantDepth);
}

// The value in a variant, as one that has zeros and sums.
Result<const ArithmeticValue*> arithmetic(const KernelContext& context,
                                          const Variant& variant) {
  if (const auto* value = dynamic_cast<const ArithmeticValue*>(variant.get()))
    return value;
  return context.fail("there are no zeros and sums of {}",
                      describe_variant(variant));
}

Result<Tensor> add_variants(const KernelContext& context, const Tensor& a,
                            const Tensor& b, int depth) {
  TAGFLOW_ASSIGN(Tensor sum,
                 Tensor::allocate(a.dtype(), a.shape(), context.allocator()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const Variant& left = a.data<Variant>()[i];
    const Variant& right = b.data<Variant>()[i];
    TAGFLOW_ASSIGN(const auto* value, arithmetic(context, left));
    TAGFLOW_RETURN_IF_ERROR(arithmetic(context, right).status());
    TAGFLOW_ASSIGN(sum.mutable_data<Variant>()[i],
                   value->add(context, *right.get(), depth));
  }
  return sum;
}

class AddVariantsKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit AddVariantsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    Tensor sum = context.input(0);
    for (const Tensor& term : context.inputs().subspan(1)) {
      TAGFLOW_ASSIGN(sum, add_nested(context, sum, term, 0));
    }
    context.set_output(0, std::move(sum));
    return {};
  }
  double cost(const KernelContext& context) const override {
    return 0.2 * list_bytes(context) * context.num_inputs();
  }
};

}  // namespace

Result<Tensor> zeros_like_tensor(const KernelContext& context,
                                 const Tensor& tensor, int depth) {
  TAGFLOW_RETURN_IF_ERROR(check_depth(context, depth));
  if (!tensor.valid()) return Tensor();
  TAGFLOW_ASSIGN(Tensor zeros,
                 make_zeros(context, tensor.dtype(), tensor.shape()));
  if (tensor.dtype() != DataType::kVariant) return zeros;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    TAGFLOW_ASSIGN(const auto* value,
                   arithmetic(context, tensor.data<Variant>()[i]));
    TAGFLOW_ASSIGN(zeros.mutable_data<Variant>()[i],
                   value->zeros_like(context, depth));
  }
  return zeros;
}

Result<Tensor> add_nested(const KernelContext& context, const Tensor& a,
                          const Tensor& b, int depth) {
  TAGFLOW_RETURN_IF_ERROR(check_depth(context, depth));
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  if (a.dtype() != b.dtype() || !same_dims(a, b))
    return context.fail("cannot add {} and {}", a.describe(), b.describe());
  if (a.dtype() == DataType::kVariant)
    return add_variants(context, a, b, depth);
  return add_tensors(context, a, b, false);
}

void register_variant_arithmetic_kernels(KernelRegistry& registry) {
  registry.add<AddVariantsKernel>("AddN", {{"T", {DataType::kVariant}}});
}

}  // namespace tagflow::devices
