// InTopK: whether the target's prediction is among the k best of its row.
#include <cmath>

#include "devices/kernel_registry.h"

namespace tagflow::devices {
namespace {

template <class Target>
class InTopKKernel : public Kernel {
 public:
  explicit InTopKKernel(int64_t k) : k_(k) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    int64_t k = 0;  // an input of InTopKV2
    if (info.num_inputs() == 2) {
      TAGFLOW_ASSIGN(k, info.attr<int64_t>("k"));
    }
    return std::unique_ptr<Kernel>(std::make_unique<InTopKKernel>(k));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& predictions = context.input(0);
    const Tensor& targets = context.input(1);
    int64_t k = k_;
    if (context.num_inputs() == 3) {
      if (!context.input(2).is_scalar())
        return context.fail("k is {}, not a scalar",
                            context.input(2).describe());
      k = context.input(2).scalar_value<Target>();
    }
    if (predictions.rank() != 2)
      return context.fail("the predictions are {}, not a matrix",
                          predictions.describe());
    const int64_t rows = predictions.dim(0), classes = predictions.dim(1);
    if (targets.rank() != 1 || targets.dim(0) != rows)
      return context.fail("the targets are {}, not a vector of {}",
                          targets.describe(), rows);
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, Shape{rows}));
    for (int64_t i = 0; i < rows; ++i) {
      context.check_cancelled();
      out->mutable_data<bool>()[i] =
          is_among_best(predictions.data<float>() + i * classes, classes,
                        targets.data<Target>()[i], k);
    }
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements());
  }

 private:
  // Ties count for the target; a row with a number that is not finite, or an
  // invalid target, counts against it.
  static bool is_among_best(const float* row, int64_t classes, int64_t target,
                            int64_t k) {
    if (target < 0 || target >= classes) return false;
    int64_t better = 0;
    for (int64_t j = 0; j < classes; ++j) {
      if (!std::isfinite(row[j])) return false;
      better += row[j] > row[target];
    }
    return better < k;
  }

  int64_t k_;
};

}  // namespace

void register_in_top_k_kernels(KernelRegistry& registry) {
  for (const char* op : {"InTopK", "InTopKV2"}) {
    registry.add<InTopKKernel<int32_t>>(op, {{"T", {DataType::kInt32}}});
    registry.add<InTopKKernel<int64_t>>(op, {{"T", {DataType::kInt64}}});
  }
}

}  // namespace tagflow::devices
