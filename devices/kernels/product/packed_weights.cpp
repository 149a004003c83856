// _PackWeights: Note [What is packed] in graph/passes/pack.cpp.
#include "devices/kernels/product/packed_weights.h"

#include <cstring>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {
namespace {

// Packs nothing itself: the first product packs, so that a loop without
// iterations costs nothing.
class PackWeightsKernel final : public CheapKernel {
 public:
  explicit PackWeightsKernel(const KernelInfo& info)
      : transposed_(attr_of<bool>(info, "transposed")),
        first_(attr_of<int64_t>(info, "first")),
        count_(attr_of<int64_t>(info, "count")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Tensor weights, rows_of(context, context.input(0)));
    return new_value_output<PackedWeights>(context, 0, weights, transposed_)
        .status();
  }

 private:
  // The selected rows.
  Result<Tensor> rows_of(const KernelContext& context,
                         const Tensor& weights) const {
    // No rows: the weights are of a variable without a value, and are not used.
    if (count_ == 0 || weights.num_elements() == 0) return weights;
    if (!transposed_ || weights.rank() != 2 || first_ > weights.dim(0) ||
        count_ > weights.dim(0) - first_)
      return context.fail("{} has no {} rows of outputs from {} on",
                          weights.describe(), count_, first_);
    Shape shape = weights.shape();
    shape.set_dim(0, count_);
    TAGFLOW_ASSIGN(Tensor rows, Tensor::allocate(weights.dtype(), shape,
                                                 context.allocator()));
    const size_t row = size_t(weights.dim(1)) * sizeof(float);
    std::memcpy(
        rows.mutable_raw(),
        static_cast<const std::byte*>(weights.raw()) + size_t(first_) * row,
        rows.bytes());
    return rows;
  }

  bool transposed_;
  int64_t first_, count_;
};

}  // namespace

PackedWeights::PackedWeights(Tensor tensor, bool is_transposed)
    : tensor_(std::move(tensor)),
      matrix_(PackedMatrix::can_pack(tensor_, is_transposed)
                  ? std::make_unique<PackedMatrix>(tensor_, is_transposed)
                  : nullptr) {}

std::string PackedWeights::describe() const {
  return "PackedWeights of " + tensor_.describe();
}

void register_packed_weights_kernels(KernelRegistry& registry) {
  registry.add<PackWeightsKernel>("_PackWeights");
}

}  // namespace tagflow::devices
