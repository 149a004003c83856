// MaxPool, MaxPoolV2, MaxPool3D and MaxPoolWithArgmax.
#include "devices/kernel_registry.h"
#include "devices/kernels/pooling/pool.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

template <class T>
class MaxPoolKernel : public Kernel {
 public:
  explicit MaxPoolKernel(graph::WindowAttrs window)
      : window_(std::move(window)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, pool_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<MaxPoolKernel>(std::move(window)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const graph::WindowAttrs window,
                   complete_window(context, window_, 1));
    if (input.rank() != window.rank)
      return context.fail("the input is {}, not of {} dimensions",
                          input.describe(), window.rank);
    TAGFLOW_RETURN_IF_ERROR(
        check_pool_window(context, window, window.rank == 4));
    TAGFLOW_ASSIGN(const Geometry g,
                   make_pool_geometry(context, window, input.shape()));
    TAGFLOW_ASSIGN(const Tensor in, to_channels_last(context, window, input));
    const auto channel = size_t(window.channel_dim());
    const int64_t together = window.size[channel];
    if (together != 1 || window.stride[channel] != 1) {
      TAGFLOW_RETURN_IF_ERROR(check_over_channels(context, window, g));
      return over_channels(context, window, g, together, in.data<T>());
    }
    TAGFLOW_ASSIGN(const Shape shape,
                   make_shape(window, g.batch, g.out, g.channels));
    TAGFLOW_ASSIGN(Tensor last, context.allocate_temp(input.dtype(), shape));
    pool(context, g, in.data<T>(), last.mutable_data<T>());
    return set_output_from(context, window, shape, last);
  }

  double cost(const KernelContext& context) const override {
    return pool_cost(context.input(0), window_);
  }

 private:
  static void pool(const KernelContext& context, const Geometry& g, const T* in,
                   T* out) {
    if (g.channels == 0) return;
    const int64_t positions = g.out_positions();
    context.parallel_for(
        g.batch * positions, double(g.taps()) * double(g.channels) * 0.3,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T* image = in + i / positions * g.in_positions() * g.channels;
            T* best = out + i * g.channels;
            std::fill_n(best, g.channels, lowest_finite<T>());
            g.for_taps(i % positions, [&](int64_t, int64_t at) {
              const T* row = image + at * g.channels;
              for (int64_t c = 0; c < g.channels; ++c)
                best[c] = row[c] > best[c] ? row[c] : best[c];
            });
          }
        });
  }

  static Status check_over_channels(const KernelContext& context,
                                    const graph::WindowAttrs& window,
                                    const Geometry& g) {
    const auto channel = size_t(window.channel_dim());
    const char* refusal = nullptr;
    if (g.taps() != 1 || g.in != g.out)
      refusal = "spans both channels and positions";
    else if (window.size[channel] != window.stride[channel])
      refusal = "has another stride than size over the channels";
    else if (g.channels % window.size[channel] != 0)
      refusal = "does not divide the channels";
    if (refusal == nullptr) return Status();
    return error(Code::kUnimplemented, "[{}] the window {}",
                 context.node().op(), refusal);
  }

  // Merges `together` neighbouring channels into one.
  static Status over_channels(KernelContext& context,
                              const graph::WindowAttrs& window,
                              const Geometry& g, int64_t together,
                              const T* in) {
    TAGFLOW_ASSIGN(const Shape shape,
                   make_shape(window, g.batch, g.out, g.channels / together));
    TAGFLOW_ASSIGN(Tensor last, context.allocate_temp(kDataTypeOf<T>, shape));
    T* out = last.mutable_data<T>();
    for (int64_t i = 0; i < last.num_elements(); ++i, in += together)
      out[i] = *std::max_element(in, in + together);
    return set_output_from(context, window, shape, last);
  }

  graph::WindowAttrs window_;
};

// Also returns the position of each maximum: its element's number in the image,
// or in the batch.
template <class T>
class ArgmaxPoolKernel : public Kernel {
 public:
  ArgmaxPoolKernel(graph::WindowAttrs window, bool include_batch)
      : window_(std::move(window)), include_batch_(include_batch) {
    // Only height and width are used here; other attributes are ignored.
    window_.size[0] = window_.size[3] = 1;
    window_.stride[0] = window_.stride[3] = 1;
  }
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, pool_attrs(info));
    TAGFLOW_ASSIGN(const bool include_batch,
                   info.attr<bool>("include_batch_in_index"));
    return std::unique_ptr<Kernel>(
        std::make_unique<ArgmaxPoolKernel>(std::move(window), include_batch));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() != 4)
      return context.fail("the input is {}, not of 4 dimensions",
                          input.describe());
    if (input.num_elements() == 0)
      return context.fail("the input {} is empty", input.describe());
    TAGFLOW_ASSIGN(const Geometry g,
                   make_pool_geometry(context, window_, input.shape()));
    TAGFLOW_ASSIGN(const Shape shape,
                   make_shape(window_, g.batch, g.out, g.channels));
    TAGFLOW_RETURN_IF_ERROR(context.allocate_output(0, shape).status());
    TAGFLOW_ASSIGN(Tensor * argmax, context.allocate_output(1, shape));
    if (argmax->dtype() == DataType::kInt64) {
      pool<int64_t>(context, g);
      return Status();
    }
    if (input.num_elements() > std::numeric_limits<int32_t>::max())
      return context.fail("positions in {} do not fit in int32",
                          input.describe());
    pool<int32_t>(context, g);
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return pool_cost(context.input(0), window_);
  }

 private:
  template <class Index>
  void pool(KernelContext& context, const Geometry& g) const {
    if (context.output(0).num_elements() == 0) return;
    const T* in = context.input(0).data<T>();
    T* out = context.output(0).mutable_data<T>();
    Index* argmax = context.output(1).mutable_data<Index>();
    const int64_t positions = g.out_positions();
    const int64_t image_size = g.in_positions() * g.channels;
    context.parallel_for(
        g.batch * positions, double(g.taps()) * double(g.channels),
        [&](int64_t begin, int64_t end) {
          Largest<T, int64_t> largest(g.channels);
          for (int64_t i = begin; i < end; ++i) {
            const int64_t n = i / positions;
            const T* image = in + n * image_size;
            largest.find(g, image, i % positions);
            for (int64_t c = 0; c < g.channels; ++c) {
              const int64_t at =
                  std::max<int64_t>(largest.positions[size_t(c)], 0) *
                      g.channels +
                  c;
              out[i * g.channels + c] = image[at];
              argmax[i * g.channels + c] =
                  Index(at + (include_batch_ ? n * image_size : 0));
            }
          }
        });
  }

  graph::WindowAttrs window_;
  bool include_batch_;
};

}  // namespace

void register_max_pool_kernels(KernelRegistry& registry) {
  for_each_real([&]<class T>(TypeTag<T>) {
    for (const char* op : {"MaxPool", "MaxPoolV2", "MaxPool3D"})
      registry.add<MaxPoolKernel<T>>(op, {{"T", {kDataTypeOf<T>}}});
    registry.add<ArgmaxPoolKernel<T>>("MaxPoolWithArgmax",
                                      {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
