// Gathers of a variable's rows, by handle and by reference. They hold the
// variable while they copy, and never keep its buffer: so the next update of a
// few rows finds the buffer unshared.
#include "devices/kernels/array/gather.h"

#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

class VariableGatherKernel : public StateKernel {
 public:
  explicit VariableGatherKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status claim(const KernelContext& context, StateClaim& claim) const final {
    if (is_value(context)) return {};
    return claim_variable(context, 0, Mode::kShared, claim);
  }
  Status compute_held(KernelContext& context) const final {
    if (is_value(context)) return gather(context, context.input(0));
    TAGFLOW_ASSIGN(Variable * variable,
                   initialized_variable(context, 0, dtype_));
    return gather(context, variable->value());
  }
  double cost(const KernelContext& context) const final {
    constexpr double kNanosecondsPerByte = 0.2;
    const Tensor& indices = context.input(1);
    const int depth = this->depth(indices);
    if (depth == 0 || indices.num_elements() == 0) return 0;
    const double bytes = is_value(context)
                             ? double(context.input(0).bytes())
                             : slice_bytes_hint(context, 0, depth);
    return kNanosecondsPerByte * double(indices.num_elements()) *
           (8 + bytes / double(depth));
  }

 private:
  virtual Status gather(KernelContext& context, const Tensor& params) const = 0;
  // The number of dimensions of the params that are indexed.
  virtual int depth(const Tensor& indices) const = 0;

  // Whether it is not a variable, but a value on an edge of references.
  bool is_value(const KernelContext& context) const {
    return context.input(0).dtype() == dtype_;
  }

  const DataType dtype_;
};

// ResourceGather, and Gather and GatherV2 for a reference.
class GatherRowsKernel final : public VariableGatherKernel {
 public:
  explicit GatherRowsKernel(const KernelInfo& info)
      : VariableGatherKernel(info),
        is_resource_(info.node().op() == "ResourceGather"),
        batch_dims_(attr_of<int64_t>(info, "batch_dims")) {}

 private:
  Status gather(KernelContext& context, const Tensor& params) const override {
    int64_t axis = batch_dims_;
    if (!is_resource_) {
      TAGFLOW_ASSIGN(axis, gather_axis(context));
    } else if (batch_dims_ < 0) {
      return context.fail("batch_dims is {}, below 0", batch_dims_);
    } else if (batch_dims_ > 0 && batch_dims_ >= params.rank()) {
      return context.fail(
          "batch_dims is {}, but params {} have only {} dimensions, of which "
          "one must be left to gather from",
          batch_dims_, params.describe(), params.rank());
    }
    TAGFLOW_ASSIGN(const GatherPlan plan,
                   plan_gather(context, params, axis, batch_dims_));
    return gather_rows(context, params, plan);
  }
  int depth(const Tensor&) const override { return 1; }

  const bool is_resource_;
  const int64_t batch_dims_;
};

// ResourceGatherNd, and GatherNd for a reference.
class GatherVectorsKernel final : public VariableGatherKernel {
 public:
  GatherVectorsKernel(const KernelInfo& info, BadIndices policy)
      : VariableGatherKernel(info), policy_(policy) {}

 private:
  Status gather(KernelContext& context, const Tensor& params) const override {
    return gather_by_vectors(context, params, policy_);
  }
  int depth(const Tensor& indices) const override {
    return indices.rank() < 1 ? 0 : int(indices.dim(indices.rank() - 1));
  }

  const BadIndices policy_;
};

}  // namespace

bool gathers_of_reference(const KernelInfo& info) {
  const graph::Endpoint& params = info.node().inputs()[0];
  return is_ref(params.node->output_dtypes()[size_t(params.port)]);
}

Result<std::unique_ptr<Kernel>> make_reference_gather(const KernelInfo& info) {
  return std::unique_ptr<Kernel>(std::make_unique<GatherRowsKernel>(info));
}

Result<std::unique_ptr<Kernel>> make_reference_gather_nd(
    const KernelInfo& info) {
  TAGFLOW_ASSIGN(const BadIndices policy, bad_indices_policy(info));
  return std::unique_ptr<Kernel>(
      std::make_unique<GatherVectorsKernel>(info, policy));
}

void register_state_gather_kernels(KernelRegistry& registry) {
  registry.add<GatherRowsKernel>("ResourceGather");
  KernelDef nd;
  nd.op = "ResourceGatherNd";
  nd.factory = make_reference_gather_nd;
  registry.add(std::move(nd));
}

}  // namespace tagflow::devices
