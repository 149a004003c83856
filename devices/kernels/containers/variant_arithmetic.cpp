// AddN and ZerosLike of variants.
#include "devices/kernels/containers/variant_arithmetic.h"

#include <algorithm>
#include <typeinfo>

#include "devices/kernels/containers/tensor_list.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/elementwise.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

Status check_depth(const KernelContext& context, int depth) {
  if (depth <= kMaxVariantDepth) return {};
  return error(Code::kResourceExhausted,
               "[{}] values are nested deeper than {} levels",
               context.node().op(), kMaxVariantDepth);
}

// The value in a variant, as an ArithmeticValue.
Result<const ArithmeticValue*> arithmetic(const KernelContext& context,
                                          const Variant& variant) {
  if (const auto* value = as_arithmetic(variant.get())) return value;
  return context.fail("there are no zeros and sums of {}",
                      describe_variant(variant));
}

Status check_alike(const KernelContext& context, const Tensor& a,
                   const Tensor& b) {
  if (a.dtype() == b.dtype() && same_dims(a, b)) return {};
  return context.fail("cannot add {} and {}", a.describe(), b.describe());
}

// The cost of copying the variants of a tensor before others are added.
int64_t copy_size_of(const Tensor& tensor) {
  int64_t size = 0;
  for (const Variant& variant : tensor.flat<Variant>())
    if (const auto* value = as_gradient(variant.get()))
      size += value->copy_size();
  return size;
}

// Adds all others to the one that is the most expensive to copy.
class AddVariantsKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit AddVariantsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const auto inputs = context.inputs();
    const auto weight = [](const Tensor& term) {
      return is_zero_variant(term) ? -1 : copy_size_of(term);
    };
    const auto first =
        std::ranges::max_element(inputs, {}, weight) - inputs.begin();
    const Tensor& base = inputs[size_t(first)];
    for (const Tensor& term : inputs)
      if (!is_zero_variant(term))
        TAGFLOW_RETURN_IF_ERROR(check_alike(context, base, term));
    TAGFLOW_ASSIGN(const auto sums,
                   changed_variants_output(context, int(first), 0));
    VariantSum additions(context, 0);
    for (const Tensor& term : inputs) {
      if (&term == &base || is_zero_variant(term)) continue;
      for (size_t i = 0; i < sums.size(); ++i)
        additions.add(sums[i], term.data<Variant>()[i]);
      TAGFLOW_RETURN_IF_ERROR(additions.finish());
    }
    return {};
  }
  double cost(const KernelContext& context) const override {
    return 0.2 * list_bytes(context) * context.num_inputs();
  }
};

}  // namespace

bool is_zero_variant(const Tensor& tensor) {
  return tensor.dtype() == DataType::kVariant && tensor.is_scalar() &&
         tensor.data<Variant>()->get() == nullptr;
}

Result<Variant> GradientValue::zeros_like(const KernelContext&, int) const {
  return Variant();
}

Result<Variant> GradientValue::add(const KernelContext& context,
                                   const VariantValue& other, int depth) const {
  if (typeid(other) != typeid(*this))
    return context.fail("cannot add {} and {}", describe(), other.describe());
  VariantSum additions(context, depth);
  Ref<GradientValue> sum = copy();
  TAGFLOW_RETURN_IF_ERROR(
      sum->accumulate(additions, static_cast<const GradientValue&>(other)));
  TAGFLOW_RETURN_IF_ERROR(additions.finish());
  return Variant(std::move(sum));
}

Status VariantSum::add(Tensor& sum, const Tensor& term) {
  if (!term.valid()) return {};
  const bool is_alike = sum.valid() && sum.dtype() == term.dtype();
  if (is_alike && is_zero_variant(term)) return {};
  if (!sum.valid() || (is_alike && is_zero_variant(sum))) {
    sum = term;
    return {};
  }
  TAGFLOW_RETURN_IF_ERROR(check_alike(context_, sum, term));
  if (sum.dtype() != DataType::kVariant) {
    TAGFLOW_ASSIGN(sum, add_tensors(context_, std::move(sum), term,
                                    context_.step().forward_buffers));
    return {};
  }
  if (!sum.unique()) {
    TAGFLOW_ASSIGN(Tensor own, Tensor::allocate(DataType::kVariant, sum.shape(),
                                                context_.allocator()));
    std::ranges::copy(sum.flat<Variant>(), own.mutable_flat<Variant>().begin());
    sum = std::move(own);
  }
  for (int64_t i = 0; i < sum.num_elements(); ++i)
    add(sum.mutable_data<Variant>()[i], term.data<Variant>()[i]);
  return {};
}

Status VariantSum::finish() {
  while (!put_off_.empty()) {
    const Addition next = std::move(put_off_.back());
    put_off_.pop_back();
    TAGFLOW_RETURN_IF_ERROR(carry_out(*next.sum, next.term));
  }
  return {};
}

Status VariantSum::carry_out(Variant& sum, const Variant& term) {
  if (term.get() == nullptr) return {};
  if (sum.get() == nullptr) {
    sum = term;
    return {};
  }
  TAGFLOW_ASSIGN(const auto* value, arithmetic(context_, sum));
  TAGFLOW_ASSIGN(const auto* other, arithmetic(context_, term));
  auto* gradient = as_gradient(sum.get());
  if (gradient == nullptr || typeid(*value) != typeid(*other)) {
    TAGFLOW_ASSIGN(sum, value->add(context_, *other, depth_));
    return {};
  }
  if (!gradient->unique()) {
    Ref<GradientValue> own = gradient->copy();
    gradient = own.get();
    sum = Variant(std::move(own));
  }
  return gradient->accumulate(*this, static_cast<const GradientValue&>(*other));
}

Result<Tensor> zeros_like_tensor(const KernelContext& context,
                                 const Tensor& tensor, int depth) {
  TAGFLOW_RETURN_IF_ERROR(check_depth(context, depth));
  if (!tensor.valid()) return Tensor();
  TAGFLOW_ASSIGN(Tensor zeros,
                 make_zeros(context, tensor.dtype(), tensor.shape()));
  if (tensor.dtype() != DataType::kVariant) return zeros;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Variant& variant = tensor.data<Variant>()[i];
    if (variant.get() == nullptr) continue;
    TAGFLOW_ASSIGN(const auto* value, arithmetic(context, variant));
    TAGFLOW_ASSIGN(zeros.mutable_data<Variant>()[i],
                   value->zeros_like(context, depth));
  }
  return zeros;
}

Result<Tensor> add_nested(const KernelContext& context, const Tensor& a,
                          const Tensor& b, int depth) {
  TAGFLOW_RETURN_IF_ERROR(check_depth(context, depth));
  Tensor sum = a;
  VariantSum additions(context, depth);
  TAGFLOW_RETURN_IF_ERROR(additions.add(sum, b));
  TAGFLOW_RETURN_IF_ERROR(additions.finish());
  return sum;
}

void register_variant_arithmetic_kernels(KernelRegistry& registry) {
  registry.add<AddVariantsKernel>("AddN", {{"T", {DataType::kVariant}}});
}

}  // namespace tagflow::devices
