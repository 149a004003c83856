// Gradients of max pools, and gradients of these gradients.
#include "devices/kernel_registry.h"
#include "devices/kernels/pooling/pool.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

// From orig_input, orig_output and grad. The first order adds the gradient of
// each window to its largest element; in three dimensions to all elements that
// are equal to it, as TensorFlow's CPU kernels do. The second order reads the
// gradient at that element.
template <class T>
class MaxPoolGradKernel : public Kernel {
 public:
  MaxPoolGradKernel(graph::WindowAttrs window, bool second_order)
      : window_(std::move(window)), second_order_(second_order) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, pool_attrs(info));
    const bool second = info.node().op().find("GradGrad") != std::string::npos;
    return std::unique_ptr<Kernel>(
        std::make_unique<MaxPoolGradKernel>(std::move(window), second));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const graph::WindowAttrs window,
                   complete_window(context, window_, 3));
    if (input.rank() != window.rank)
      return context.fail("orig_input is {}, not of {} dimensions",
                          input.describe(), window.rank);
    TAGFLOW_RETURN_IF_ERROR(check_pool_window(context, window, false));
    TAGFLOW_ASSIGN(const Geometry g,
                   make_pool_geometry(context, window, input.shape()));
    TAGFLOW_ASSIGN(const Shape pooled,
                   make_shape(window, g.batch, g.out, g.channels));
    for (int i : {1, 2}) {
      const Shape& wanted = i == 2 && second_order_ ? input.shape() : pooled;
      if (!(context.input(i).shape() == wanted))
        return context.fail("input {} is {}, not of shape {}", i,
                            context.input(i).describe(), wanted.to_string());
    }
    // As in TensorFlow, checked only for this order in three dimensions.
    if (second_order_ && window.rank == 5 &&
        (input.num_elements() == 0 || pooled.num_elements() == 0))
      return context.fail("orig_input {} or orig_output {} has no elements",
                          input.describe(), context.input(1).describe());
    TAGFLOW_ASSIGN(const Tensor in, to_channels_last(context, window, input));
    TAGFLOW_ASSIGN(const Tensor grad,
                   to_channels_last(context, window, context.input(2)));
    const Shape shape = second_order_ ? pooled : input.shape();
    TAGFLOW_ASSIGN(Tensor last, context.allocate_temp(kDataTypeOf<T>, shape));
    if (second_order_)
      pick(context, g, in.data<T>(), grad.data<T>(), last.mutable_data<T>());
    else if (window.rank == 5)
      add_to_all(context, g, in.data<T>(), grad.data<T>(),
                 last.mutable_data<T>());
    else
      add(context, g, in.data<T>(), grad.data<T>(), last.mutable_data<T>());
    return set_output_from(context, window, shape, last);
  }

  double cost(const KernelContext& context) const override {
    return 3 * pool_cost(context.input(0), window_);
  }

 private:
  // Calls begin(n) for every image, and then body(n, at, largest) for each of
  // its windows.
  template <class Begin, class Body>
  static void for_windows(const KernelContext& context, const Geometry& g,
                          const T* in, Begin&& begin, Body&& body) {
    const int64_t positions = g.out_positions();
    // Iterating over nothing must take no time.
    if (g.channels == 0 || (g.in_positions() == 0 && positions == 0)) return;
    const double cost = double(g.taps()) * double(g.channels * positions) * 0.2;
    with_position_type(g, [&]<class Index>(Index) {
      context.parallel_for(g.batch, cost, [&](int64_t first, int64_t last) {
        Largest<T, Index> largest(g.channels);
        for (int64_t n = first; n < last; ++n) {
          begin(n);
          for (int64_t at = 0; at < positions; ++at) {
            context.check_cancelled();
            largest.find(g, in + n * g.in_positions() * g.channels, at);
            body(n, at, largest);
          }
        }
      });
    });
  }

  // Adds the gradient of each window to the elements for which
  // is_chosen(element, position, value, position of the largest) is true.
  template <class IsChosen>
  static void add_where(const KernelContext& context, const Geometry& g,
                        const T* in, const T* grad, T* out,
                        IsChosen&& is_chosen) {
    const int64_t image = g.in_positions() * g.channels;
    for_windows(
        context, g, in,
        [&](int64_t n) { std::fill_n(out + n * image, image, T(0)); },
        [&](int64_t n, int64_t at, const auto& largest) {
          const T* const from =
              grad + (n * g.out_positions() + at) * g.channels;
          const T* const values = largest.values.data();
          const auto* const positions = largest.positions.data();
          g.for_taps(at, [&](int64_t, int64_t position) {
            const int64_t first = n * image + position * g.channels;
            const T* const row = in + first;
            T* __restrict const to = out + first;
            for (int64_t c = 0; c < g.channels; ++c)
              to[c] = is_chosen(row[c], values[c], position, positions[c])
                          ? T(to[c] + from[c])
                          : to[c];
          });
        });
  }

  static void add(const KernelContext& context, const Geometry& g, const T* in,
                  const T* grad, T* out) {
    add_where(context, g, in, grad, out,
              [](T, T, int64_t position, auto largest) {
                return decltype(largest)(position) == largest;
              });
  }

  static void add_to_all(const KernelContext& context, const Geometry& g,
                         const T* in, const T* grad, T* out) {
    add_where(context, g, in, grad, out, [](T value, T largest, int64_t, auto) {
      return value == largest;
    });
  }

  static void pick(const KernelContext& context, const Geometry& g, const T* in,
                   const T* grad, T* out) {
    const int64_t image = g.in_positions() * g.channels;
    for_windows(
        context, g, in, [](int64_t) {},
        [&](int64_t n, int64_t at, const auto& largest) {
          T* to = out + (n * g.out_positions() + at) * g.channels;
          for (int64_t c = 0; c < g.channels; ++c) {
            const int64_t position = largest.positions[size_t(c)];
            to[c] = position < 0 ? T(0)
                                 : grad[n * image + position * g.channels + c];
          }
        });
  }

  graph::WindowAttrs window_;
  bool second_order_;
};

// From input, grad and the positions of MaxPoolWithArgmax.
template <class T>
class ArgmaxGradKernel : public Kernel {
 public:
  ArgmaxGradKernel(bool include_batch, bool second_order)
      : include_batch_(include_batch), second_order_(second_order) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const bool include_batch,
                   info.attr<bool>("include_batch_in_index"));
    return std::unique_ptr<Kernel>(std::make_unique<ArgmaxGradKernel>(
        include_batch, info.node().op() == "MaxPoolGradGradWithArgmax"));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& grad = context.input(1);
    const Tensor& argmax = context.input(2);
    if (input.rank() != 4 || argmax.rank() != 4 ||
        input.dim(0) != argmax.dim(0))
      return context.fail("input {} and argmax {} do not belong together",
                          input.describe(), argmax.describe());
    const Tensor& like = second_order_ ? input : argmax;
    if (!(grad.shape() == like.shape()))
      return context.fail("grad is {}, not of shape {}", grad.describe(),
                          like.shape().to_string());
    return argmax.dtype() == DataType::kInt32 ? move<int32_t>(context)
                                              : move<int64_t>(context);
  }
  double cost(const KernelContext& context) const override {
    return double(context.input(0).num_elements()) +
           2 * double(context.input(2).num_elements());
  }

 private:
  template <class Index>
  Status move(KernelContext& context) const {
    const Tensor& input = context.input(0);
    const Tensor& argmax = context.input(2);
    const int64_t images = input.dim(0);
    const int64_t count = input.num_elements();
    TAGFLOW_ASSIGN(Tensor * out,
                   context.allocate_output(
                       0, second_order_ ? argmax.shape() : input.shape()));
    T* to = out->mutable_data<T>();
    const T* grad = context.input(1).data<T>();
    if (!second_order_) std::fill_n(to, count, T(0));
    const int64_t per_image = images == 0 ? 0 : argmax.num_elements() / images;
    for (int64_t i = 0; i < argmax.num_elements(); ++i) {
      context.check_cancelled();
      // The size that positions of the input are relative to.
      const int64_t size = include_batch_ ? count : count / images;
      const int64_t start = include_batch_ ? 0 : i / per_image * size;
      const int64_t at = argmax.data<Index>()[i];
      if (at < 0 || at >= size)
        return context.fail("argmax element {} = {} is out of range [0, {})", i,
                            at, size);
      if (second_order_)
        to[i] = grad[start + at];
      else
        to[start + at] = T(to[start + at] + grad[i]);
    }
    return Status();
  }

  bool include_batch_, second_order_;
};

}  // namespace

void register_max_pool_grad_kernels(KernelRegistry& registry) {
  for_each_real([&]<class T>(TypeTag<T>) {
    const std::vector<DataType> type = {kDataTypeOf<T>};
    for (const char* op : {"MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad",
                           "MaxPoolGradGradV2", "MaxPool3DGradGrad"})
      registry.add<MaxPoolGradKernel<T>>(op, {{"T", type}});
    registry.add<MaxPoolGradKernel<T>>("MaxPool3DGrad",
                                       {{"T", type}, {"TInput", type}});
    for (const char* op :
         {"MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"})
      registry.add<ArgmaxGradKernel<T>>(op, {{"T", type}});
  });
}

}  // namespace tagflow::devices
