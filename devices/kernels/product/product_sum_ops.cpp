// _ProductSum* ops: Note [What is summed] in graph/passes/sums.cpp.
#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/product/product_sum.h"

namespace tagflow::devices {

namespace {

// The sum of input 0, checked for the node's type.
Result<const ProductSum*> sum_input(const KernelContext& context,
                                    DataType dtype) {
  TAGFLOW_ASSIGN(const auto* sum,
                 value_input<ProductSum>(context, 0, "sum of products"));
  if (sum->dtype() != dtype)
    return context.fail("a sum of {} is wanted, not a {}", dtype_name(dtype),
                        sum->describe());
  return sum;
}

class ProductSumKernel final : public CheapKernel {
 public:
  explicit ProductSumKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return new_value_output<ProductSum>(context, 0, context.input(0)).status();
  }
};

class ProductSumAddKernel final : public Kernel {
 public:
  explicit ProductSumAddKernel(const KernelInfo& info)
      : transpose_a_(attr_of<bool>(info, "transpose_a")),
        transpose_b_(attr_of<bool>(info, "transpose_b")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        sum_input(context, context.input(1).dtype()).status());
    TAGFLOW_ASSIGN(auto* sum, changed_value_output<ProductSum>(context, 0, 0));
    return sum->add(context, product_of(context));
  }

  double cost(const KernelContext& context) const override {
    const auto sum = sum_input(context, context.input(1).dtype());
    return sum.ok() ? (*sum)->cost_of_add(product_of(context)) : 0;
  }

 private:
  MatrixProduct product_of(const KernelContext& context) const {
    return {context.input(1), context.input(2), transpose_a_, transpose_b_};
  }

  bool transpose_a_, transpose_b_;
};

class ProductSumValueKernel final : public Kernel {
 public:
  explicit ProductSumValueKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* input, sum_input(context, dtype_));
    ProductSum sum(*input);
    // An unshared input then belongs to the copy alone, and is changed in
    // place.
    context.mutable_inputs()[0].reset();
    TAGFLOW_ASSIGN(Tensor result, sum.result(context));
    context.set_output(0, std::move(result));
    return {};
  }

  double cost(const KernelContext& context) const override {
    const auto sum = sum_input(context, dtype_);
    return sum.ok() ? (*sum)->cost_of_result() : 0;
  }

 private:
  DataType dtype_;
};

}  // namespace

void register_product_sum_kernels(KernelRegistry& registry) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble}) {
    add_kernel(registry, "_ProductSum", dtype, make_kernel<ProductSumKernel>);
    add_kernel(registry, "_ProductSumAdd", dtype,
               make_kernel<ProductSumAddKernel>);
    add_kernel(registry, "_ProductSumValue", dtype,
               make_kernel<ProductSumValueKernel>);
  }
}

}  // namespace tagflow::devices
