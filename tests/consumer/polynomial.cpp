// Polynomial: an op for several types, with an attribute, whose kernel works
// in place and on several workers.
#include <utility>
#include <vector>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "own_ops.h"

using namespace tagflow;

namespace {

template <class T>
class PolynomialKernel final : public devices::Kernel {
 public:
  // Used instead of a constructor, since it may reject the node.
  static Result<std::unique_ptr<devices::Kernel>> make(
      const devices::KernelInfo& info) {
    TAGFLOW_ASSIGN(const auto given,
                   info.attr<std::vector<float>>("coefficients"));
    auto kernel = std::make_unique<PolynomialKernel>();
    kernel->coefficients_.assign(given.begin(), given.end());
    return std::unique_ptr<devices::Kernel>(std::move(kernel));
  }

  Status compute(devices::KernelContext& context) const override {
    const Tensor& x = context.input(0);
    // In place if nobody else needs x; in new memory otherwise.
    TAGFLOW_ASSIGN(Tensor * y, context.forward_or_allocate(0, 0, x.shape()));
    const T* in = x.data<T>();
    T* out = y->mutable_data<T>();
    context.parallel_for(x.num_elements(), element_cost(),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             out[i] = value_at(in[i]);
                         });
    return {};
  }

  double cost(const devices::KernelContext& context) const override {
    return element_cost() * double(context.input(0).num_elements());
  }
  // No input that is small enough to be inline in its token takes long.
  bool may_be_expensive_on_small_inputs() const override { return false; }

 private:
  // In nanoseconds.
  double element_cost() const { return 0.3 * double(coefficients_.size()); }

  T value_at(T x) const {
    T sum = 0;
    for (size_t i = coefficients_.size(); i-- > 0;)
      sum = sum * x + coefficients_[i];
    return sum;
  }

  std::vector<T> coefficients_;
};

}  // namespace

Status add_polynomial() {
  TAGFLOW_RETURN_IF_ERROR(graph::OpRegistry::global().add(
      graph::OpDefBuilder("Polynomial")
          .input("x: T")
          .output("y: T")
          .attr("T: {float, double}")
          .attr("coefficients: list(float) >= 1")
          .shape(graph::unchanged_shape)
          .build()));
  auto& kernels = devices::KernelRegistry::global();
  kernels.add<PolynomialKernel<float>>("Polynomial",
                                       {{"T", {DataType::kFloat}}});
  kernels.add<PolynomialKernel<double>>("Polynomial",
                                        {{"T", {DataType::kDouble}}});
  return {};
}
