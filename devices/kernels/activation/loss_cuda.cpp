// Cross entropies and their gradients. An invalid label is an error if the host
// has the label. If it is only on the GPU, its row becomes NaN: a check would
// have to wait.
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/device.h"
#include "devices/kernels/activation/loss.h"

namespace tagflow::devices {
namespace {

class CrossEntropyCudaKernel final : public CudaKernel {
 public:
  CrossEntropyCudaKernel(std::unique_ptr<Kernel> cpu, cuda::Element type,
                         bool sparse)
      : CudaKernel(std::move(cpu), {.takes_values = false}),
        type_(type),
        sparse_(sparse) {}

  Status check(const KernelContext& context) const override {
    if (!sparse_ || !host_readable(context.input(1))) return {};
    TAGFLOW_ASSIGN(const LossShape shape, sparse_loss_shape(context));
    return check_labels(context, shape.classes);
  }

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& logits = context.input(0);
    const Tensor& labels = context.input(1);
    TAGFLOW_ASSIGN(const LossShape shape,
                   sparse_ ? sparse_loss_shape(context) : loss_shape(context));
    TAGFLOW_RETURN_IF_ERROR(allocate_loss(context, shape));
    Tensor& loss = context.output(0);
    if (shape.rows == 0) return {};
    if (shape.classes == 0)
      return cuda_status(
          cudaMemsetAsync(loss.mutable_raw(), 0, loss.bytes(), stream),
          "launching " + context.node().op());
    cuda::CrossEntropyArgs args;
    args.rows = shape.rows;
    args.classes = shape.classes;
    args.sparse = sparse_;
    const LossSteps of_logits(logits, shape), of_labels(labels, shape);
    args.logits = logits.raw();
    args.logits_row = of_logits.row;
    args.logits_column = of_logits.column;
    args.labels = operand_of(labels);
    args.labels_row = of_labels.row;
    args.labels_column = of_labels.column;
    args.wide_labels = labels.dtype() == DataType::kInt64;
    args.loss = loss.mutable_raw();
    args.gradient = context.output(1).mutable_raw();
    return cuda_status(cuda::cross_entropy(type_, args, stream),
                       "launching " + context.node().op());
  }

 private:
  const cuda::Element type_;
  const bool sparse_;
};

}  // namespace

void register_cuda_loss_kernels(KernelRegistry& registry) {
  for (const bool sparse : {false, true})
    add_cuda_kernel(
        registry,
        sparse ? "SparseSoftmaxCrossEntropyWithLogits"
               : "SoftmaxCrossEntropyWithLogits",
        {{"T", cuda_floats()}},
        [sparse](const KernelInfo& info, std::unique_ptr<Kernel> cpu)
            -> Result<std::unique_ptr<Kernel>> {
          return std::unique_ptr<Kernel>(
              std::make_unique<CrossEntropyCudaKernel>(
                  std::move(cpu), *element_of(info.input_dtype(0)), sparse));
        });
}

}  // namespace tagflow::devices
