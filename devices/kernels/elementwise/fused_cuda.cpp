// _FusedElementwise on a GPU: runs its ops one after another.
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/status.h"
#include "devices/kernels/elementwise/fused_columns.h"
#include "devices/kernels/elementwise/fused_program.h"
#include "graph/graph.h"

namespace tagflow::devices {
namespace {

// One op. Operands are numbered: the inputs, then the results so far.
struct FusedStep {
  graph::Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  boost::container::static_vector<size_t, 2> operands;
};

class FusedCudaKernel final : public CudaKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info,
                                              std::unique_ptr<Kernel> cpu,
                                              const KernelRegistry& registry) {
    auto kernel = std::make_unique<FusedCudaKernel>(std::move(cpu));
    Status status = kernel->build(info, registry);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[{}] node \"{}\": ", info.node().op(), info.name()));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  explicit FusedCudaKernel(std::unique_ptr<Kernel> cpu)
      : CudaKernel(std::move(cpu), {}) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    TAGFLOW_ASSIGN(const std::vector<Tensor> inputs,
                   seen_inputs(context, stream));
    std::vector<Tensor> results(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const FusedStep& step = steps_[i];
      boost::container::static_vector<Tensor, 2> operands;
      for (const size_t number : step.operands)
        operands.push_back(number < num_inputs_
                               ? inputs[number]
                               : results[number - num_inputs_]);
      // In stream order, the memory of a result can be reused after its last
      // use.
      for (const size_t number : step.operands)
        if (number >= num_inputs_ && last_use_[number - num_inputs_] == i)
          results[number - num_inputs_].reset();
      KernelContext one(step.node, {operands.data(), operands.size()},
                        {&results[i], 1}, &context.step(), &context.tag(),
                        &context.allocator());
      const Status status =
          static_cast<const CudaKernel&>(*step.kernel).enqueue(one, stream);
      if (!status.ok())
        return Status(
            status.code(),
            fmt::format("{}, in \"{}\"", status.message(), step.node->name()));
    }
    context.set_output(0, std::move(results.back()));
    return {};
  }

 private:
  // The inputs; if only some columns of one are used, a copy of these.
  Result<std::vector<Tensor>> seen_inputs(KernelContext& context,
                                          cudaStream_t stream) const {
    TAGFLOW_RETURN_IF_ERROR(check_fused_columns(context, columns_));
    std::vector<Tensor> inputs(context.inputs().begin(),
                               context.inputs().end());
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto [first, count] = columns_[i];
      if (count == 0) continue;
      const Tensor whole = inputs[i];
      const Shape shape = SeenInput(whole, columns_[i]).shape();
      TAGFLOW_ASSIGN(inputs[i], context.allocate_temp(whole.dtype(), shape));
      if (shape.num_elements() == 0) continue;
      const size_t element = dtype_size(whole.dtype());
      const size_t bytes = size_t(count) * element;
      TAGFLOW_RETURN_IF_ERROR(cuda_status(
          cudaMemcpy2DAsync(inputs[i].mutable_raw(), bytes,
                            static_cast<const std::byte*>(whole.raw()) +
                                size_t(first) * element,
                            size_t(whole.dim(whole.rank() - 1)) * element,
                            bytes, size_t(shape.num_elements() / count),
                            cudaMemcpyDefault, stream),
          "copying columns"));
    }
    return inputs;
  }

  // REQUIRES: the CPU's kernel has accepted the node.
  Status build(const KernelInfo& info, const KernelRegistry& registry) {
    using Strings = std::vector<std::string>;
    TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
    TAGFLOW_ASSIGN(const auto names, info.attr<Strings>("names"));
    TAGFLOW_ASSIGN(columns_, read_fused_columns(info));
    // Passes create several outputs only for a CPU.
    TAGFLOW_ASSIGN(const auto outputs,
                   info.attr<std::vector<int64_t>>("outputs"));
    if (info.num_outputs() != 1 || !outputs.empty())
      return invalid_argument("a GPU makes the last result only");
    num_inputs_ = size_t(info.num_inputs());
    std::vector<graph::Endpoint> values;
    for (int i = 0; i < info.num_inputs(); ++i) {
      TAGFLOW_ASSIGN(graph::Node * input,
                     graph_.add(graph_.unique_name("input"), "Placeholder", {},
                                {{"dtype", info.input_dtype(i)}}));
      values.push_back({input, 0});
    }
    for (size_t i = 0; i < program.size(); ++i) {
      TAGFLOW_ASSIGN(const FusedLine line,
                     parse_fused_line(program[i], values.size()));
      FusedStep step;
      step.operands = line.operands;
      std::vector<graph::Endpoint> operands;
      for (const size_t number : line.operands) {
        operands.push_back(values[number]);
        if (number >= num_inputs_) last_use_[number - num_inputs_] = i;
      }
      TAGFLOW_ASSIGN(step.node, graph_.add(graph_.unique_name(names[i]),
                                           line.op, operands));
      TAGFLOW_ASSIGN(step.kernel, registry.make(*step.node, "GPU"));
      if (static_cast<const CudaKernel&>(*step.kernel).runs() != Runs::kOnGpu)
        return invalid_argument("{} cannot be fused on a GPU", line.op);
      values.push_back({step.node, 0});
      steps_.push_back(std::move(step));
      last_use_.push_back(0);
    }
    return {};
  }

  graph::Graph graph_;  // of the ops
  std::vector<FusedStep> steps_;
  std::vector<size_t> last_use_;       // of each result: its last user
  std::vector<FusedColumns> columns_;  // by input; or empty
  size_t num_inputs_ = 0;
};

}  // namespace

void register_cuda_fused_kernels(KernelRegistry& registry) {
  add_cuda_kernel(
      registry, "_FusedElementwise",
      {{"T",
        {DataType::kFloat, DataType::kDouble, DataType::kHalf,
         DataType::kBFloat16}}},
      [&registry](const KernelInfo& info, std::unique_ptr<Kernel> cpu) {
        return FusedCudaKernel::make(info, std::move(cpu), registry);
      });
}

}  // namespace tagflow::devices
