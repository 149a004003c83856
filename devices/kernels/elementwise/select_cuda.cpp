// Select and SelectV2.
#include "devices/broadcast.h"
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/device.h"
#include "devices/kernels/elementwise/elementwise.h"

namespace tagflow::devices {
namespace {

class SelectCudaKernel final : public CudaKernel {
 public:
  // `by_rows`: for Select, whose condition may choose whole rows.
  SelectCudaKernel(std::unique_ptr<Kernel> cpu, bool by_rows)
      : CudaKernel(std::move(cpu), {}), by_rows_(by_rows) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& condition = context.input(0);
    const Tensor& x = context.input(1);
    const Tensor& y = context.input(2);
    // If the host has the condition, no kernel is needed; errors are found,
    // too.
    if (host_readable(condition) && condition.is_scalar() && same_dims(x, y)) {
      context.set_output(0, condition.scalar_value<bool>() ? x : y);
      return {};
    }
    Shape c = condition.shape();
    const Shape x_shape = x.shape(), y_shape = y.shape();
    TAGFLOW_ASSIGN(const Shape shape,
                   by_rows_ ? row_shape(context, c) : common_shape(context));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (out->num_elements() == 0) return {};
    TAGFLOW_ASSIGN(cuda::ElementwiseArgs args,
                   broadcast_args(context, shape, {&c, &x_shape, &y_shape}));
    for (int i = 0; i < 3; ++i) args.in[i] = operand_of(context.input(i));
    args.out = out->mutable_raw();
    return cuda_status(cuda::select(dtype_size(out->dtype()), args, stream),
                       "launching " + context.node().op());
  }

 private:
  static Result<Shape> common_shape(const KernelContext& context) {
    const Shape c = context.input(0).shape();
    const Shape x = context.input(1).shape();
    const Shape y = context.input(2).shape();
    Result<Shape> shape = broadcast_shapes({&c, &x, &y});
    if (!shape.ok())
      return context.fail("{}, of condition {}, t {}, e {}",
                          shape.status().message(), c.to_string(),
                          x.to_string(), y.to_string());
    return shape;
  }

  // Gives the condition `c` the rank of the values.
  static Result<Shape> row_shape(const KernelContext& context, Shape& c) {
    const Tensor& x = context.input(1);
    const Tensor& y = context.input(2);
    if (!same_dims(x, y))
      return context.fail("the values must have one shape, not {} and {}",
                          x.describe(), y.describe());
    const Shape shape = x.shape();
    const bool rows = c.rank() == 1 && shape.rank() > 1;
    if (c.rank() > 0 && (rows ? c.dim(0) != shape.dim(0) : !(c == shape)))
      return context.fail(
          "the condition must be a scalar, a vector of as many elements as the "
          "values have rows, or of their shape {}, not {}",
          shape.to_string(), c.to_string());
    while (c.rank() < shape.rank()) c.add_dim(1);
    return shape;
  }

  bool by_rows_;
};

}  // namespace

void register_cuda_select_kernels(KernelRegistry& registry) {
  for (const bool by_rows : {true, false})
    add_cuda_kernel(
        registry, by_rows ? "Select" : "SelectV2", {},
        [by_rows](const KernelInfo&, std::unique_ptr<Kernel> cpu)
            -> Result<std::unique_ptr<Kernel>> {
          return std::unique_ptr<Kernel>(
              std::make_unique<SelectCudaKernel>(std::move(cpu), by_rows));
        });
}

}  // namespace tagflow::devices
