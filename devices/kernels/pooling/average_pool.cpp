// AvgPool, AvgPool3D and their gradients. Padding does not count.
#include "devices/kernel_registry.h"
#include "devices/kernels/pooling/pool.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

class AveragePoolBase : public Kernel {
 public:
  double cost(const KernelContext& context) const override {
    return pool_cost(context.input(context.num_inputs() - 1), window_);
  }

 protected:
  explicit AveragePoolBase(graph::WindowAttrs window)
      : window_(std::move(window)) {}

  // Calls body<W>() with the type in which elements of `dtype` are summed.
  template <class Body>
  static Status visit_working_type(DataType dtype, Body&& body) {
    return dtype == DataType::kDouble ? body(TypeTag<double>{})
                                      : body(TypeTag<float>{});
  }

  const graph::WindowAttrs& window() const { return window_; }

 private:
  graph::WindowAttrs window_;
};

class AveragePoolKernel : public AveragePoolBase {
 public:
  explicit AveragePoolKernel(graph::WindowAttrs window)
      : AveragePoolBase(std::move(window)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, pool_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<AveragePoolKernel>(std::move(window)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() != window().rank)
      return context.fail("the input is {}, not of {} dimensions",
                          input.describe(), window().rank);
    TAGFLOW_RETURN_IF_ERROR(check_pool_window(context, window(), false));
    TAGFLOW_ASSIGN(const Geometry g,
                   make_pool_geometry(context, window(), input.shape()));
    return visit_working_type(
        input.dtype(), [&]<class W>(TypeTag<W>) { return run<W>(context, g); });
  }

 private:
  template <class W>
  Status run(KernelContext& context, const Geometry& g) const {
    TAGFLOW_ASSIGN(Tensor in,
                   to_channels_last(context, window(), context.input(0)));
    TAGFLOW_ASSIGN(in, convert(context, in, kDataTypeOf<W>));
    TAGFLOW_ASSIGN(const Shape shape,
                   make_shape(window(), g.batch, g.out, g.channels));
    TAGFLOW_ASSIGN(Tensor last, context.allocate_temp(kDataTypeOf<W>, shape));
    const W* from = in.data<W>();
    W* out = last.mutable_data<W>();
    const int64_t positions = g.channels == 0 ? 0 : g.out_positions();
    context.parallel_for(
        g.batch * positions, double(g.taps()) * double(g.channels) * 0.3,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const W* image =
                from + i / positions * g.in_positions() * g.channels;
            W* sum = out + i * g.channels;
            std::fill_n(sum, g.channels, W(0));
            int64_t count = 0;
            g.for_taps(i % positions, [&](int64_t, int64_t at) {
              ++count;
              const W* row = image + at * g.channels;
              for (int64_t c = 0; c < g.channels; ++c) sum[c] += row[c];
            });
            for (int64_t c = 0; c < g.channels; ++c) sum[c] /= W(count);
          }
        });
    return set_output_from(context, window(), shape, last);
  }
};

class AveragePoolGradKernel : public AveragePoolBase {
 public:
  explicit AveragePoolGradKernel(graph::WindowAttrs window)
      : AveragePoolBase(std::move(window)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, pool_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<AveragePoolGradKernel>(std::move(window)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& sizes = context.input(0);
    const Tensor& grad = context.input(1);
    const int rank = window().rank;
    if (sizes.rank() != 1 || sizes.dim(0) != rank)
      return context.fail("orig_input_shape is {}, not a vector of {}",
                          sizes.describe(), rank);
    const Shape::Dims dims(sizes.data<int32_t>(), sizes.data<int32_t>() + rank);
    Result<Shape> input = Shape::make({dims.data(), dims.size()});
    if (!input.ok()) return context.fail("{}", input.status().message());
    TAGFLOW_RETURN_IF_ERROR(check_pool_window(context, window(), false));
    TAGFLOW_ASSIGN(const Geometry g,
                   make_pool_geometry(context, window(), *input));
    TAGFLOW_ASSIGN(const Shape pooled,
                   make_shape(window(), g.batch, g.out, g.channels));
    // As in TensorFlow, empty tensors in two dimensions need not match.
    const bool may_differ =
        rank == 4 && grad.rank() == 4 &&
        (input->num_elements() == 0 || grad.num_elements() == 0);
    if (!may_differ && !(grad.shape() == pooled))
      return context.fail("grad is {}, but a pool of {} is {}", grad.describe(),
                          input->to_string(), pooled.to_string());
    return visit_working_type(grad.dtype(), [&]<class W>(TypeTag<W>) {
      return run<W>(context, g, *input);
    });
  }

 private:
  template <class W>
  Status run(KernelContext& context, const Geometry& g,
             const Shape& shape) const {
    TAGFLOW_ASSIGN(Tensor grad,
                   to_channels_last(context, window(), context.input(1)));
    TAGFLOW_ASSIGN(grad, convert(context, grad, kDataTypeOf<W>));
    TAGFLOW_ASSIGN(Tensor last, context.allocate_temp(kDataTypeOf<W>, shape));
    const W* from = grad.data<W>();
    W* out = last.mutable_data<W>();
    const int64_t image = g.in_positions() * g.channels;
    const int64_t positions = grad.num_elements() == 0 ? 0 : g.out_positions();
    const double cost = double(g.taps()) * double(positions * g.channels) * 0.5;
    context.parallel_for(g.batch, cost, [&](int64_t begin, int64_t end) {
      std::fill(out + begin * image, out + end * image, W(0));
      for (int64_t n = begin; n < end; ++n)
        for (int64_t at = 0; at < positions; ++at) {
          context.check_cancelled();
          const W* row = from + (n * positions + at) * g.channels;
          int64_t count = 0;
          g.for_taps(at, [&](int64_t, int64_t) { ++count; });
          g.for_taps(at, [&](int64_t, int64_t in) {
            W* to = out + n * image + in * g.channels;
            for (int64_t c = 0; c < g.channels; ++c) to[c] += row[c] / W(count);
          });
        }
    });
    return set_output_from(context, window(), shape, last);
  }
};

}  // namespace

void register_average_pool_kernels(KernelRegistry& registry) {
  const std::vector<DataType> types = {DataType::kFloat, DataType::kDouble,
                                       DataType::kHalf, DataType::kBFloat16};
  for (const char* op : {"AvgPool", "AvgPool3D"})
    registry.add<AveragePoolKernel>(op, {{"T", types}});
  for (const char* op : {"AvgPoolGrad", "AvgPool3DGrad"})
    registry.add<AveragePoolGradKernel>(op, {{"T", types}});
}

}  // namespace tagflow::devices
