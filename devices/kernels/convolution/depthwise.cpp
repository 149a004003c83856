// DepthwiseConv2dNative and its gradients: every input channel has its own
// filters, so there is no matrix product.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/convolution/conv_base.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// Input channel c makes output channels [c * multiplier, (c+1) * multiplier).
struct Depthwise {
  const Geometry& geometry;
  int64_t multiplier;

  int64_t out_channels() const { return geometry.channels * multiplier; }
  // Nanoseconds for one of `parts` equal parts.
  double part_cost(int64_t parts) const {
    return double(geometry.batch * geometry.out_positions()) *
           double(geometry.taps()) * double(out_channels()) * 0.3 /
           double(parts);
  }
  // Calls body(tap, input, output) with the elements' offsets in a filter, an
  // image and an image of outputs, for the positions [begin, end).
  template <class Body>
  void for_pairs(const KernelContext& context, int64_t begin, int64_t end,
                 Body&& body) const {
    for (int64_t at = begin; at < end; ++at) {
      context.check_cancelled();
      geometry.for_taps(at, [&](int64_t tap, int64_t in) {
        body(tap * out_channels(), in * geometry.channels, at * out_channels());
      });
    }
  }
};

template <class W>
void forward(const KernelContext& context, const Depthwise& d, const W* in,
             const W* filter, W* out) {
  const Geometry& g = d.geometry;
  const int64_t positions = g.out_positions(), outs = d.out_channels();
  const int64_t total = g.batch * positions;
  context.parallel_for(
      total, d.part_cost(total), [&](int64_t begin, int64_t end) {
        std::fill(out + begin * outs, out + end * outs, W(0));
        while (begin < end) {
          const int64_t image = begin / positions;
          const int64_t stop = std::min(end, (image + 1) * positions);
          const W* from = in + image * g.in_positions() * g.channels;
          W* to = out + image * positions * outs;
          d.for_pairs(
              context, begin - image * positions, stop - image * positions,
              [&](int64_t tap, int64_t source, int64_t target) {
                const W* x = from + source;
                const W* f = filter + tap;
                W* y = to + target;
                if (d.multiplier == 1) {
                  for (int64_t c = 0; c < g.channels; ++c) y[c] += x[c] * f[c];
                  return;
                }
                for (int64_t c = 0; c < g.channels; ++c)
                  for (int64_t m = 0; m < d.multiplier; ++m)
                    y[c * d.multiplier + m] += x[c] * f[c * d.multiplier + m];
              });
          begin = stop;
        }
      });
}

template <class W>
void to_input(const KernelContext& context, const Depthwise& d, const W* filter,
              const W* grad, W* in_grad) {
  const Geometry& g = d.geometry;
  const int64_t image = g.in_positions() * g.channels;
  context.parallel_for(
      g.batch, d.part_cost(g.batch), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          W* to = in_grad + n * image;
          std::fill_n(to, image, W(0));
          const W* from = grad + n * g.out_positions() * d.out_channels();
          d.for_pairs(context, 0, g.out_positions(),
                      [&](int64_t tap, int64_t source, int64_t target) {
                        for (int64_t c = 0; c < g.channels; ++c) {
                          W sum = 0;
                          for (int64_t m = 0; m < d.multiplier; ++m) {
                            const int64_t j = c * d.multiplier + m;
                            sum += filter[tap + j] * from[target + j];
                          }
                          to[source + c] += sum;
                        }
                      });
        }
      });
}

template <class W>
void to_filter(const KernelContext& context, const Depthwise& d, const W* in,
               const W* grad, W* filter_grad) {
  const Geometry& g = d.geometry;
  std::fill_n(filter_grad, g.taps() * d.out_channels(), W(0));
  for (int64_t n = 0; n < g.batch; ++n) {
    const W* x = in + n * g.in_positions() * g.channels;
    const W* dy = grad + n * g.out_positions() * d.out_channels();
    d.for_pairs(context, 0, g.out_positions(),
                [&](int64_t tap, int64_t source, int64_t target) {
                  for (int64_t c = 0; c < g.channels; ++c)
                    for (int64_t m = 0; m < d.multiplier; ++m) {
                      const int64_t j = c * d.multiplier + m;
                      filter_grad[tap + j] += x[source + c] * dy[target + j];
                    }
                });
  }
}

class DepthwiseKernel : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, conv_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<DepthwiseKernel>(std::move(window), conv_role(info)));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Shapes all, shapes(context));
    Status status;
    detail::visit_among<float, double>(
        working_type(context.node().output_dtypes()[0]),
        [&]<class W>(TypeTag<W>) { status = run<W>(context, all); });
    return status;
  }

 protected:
  Result<int64_t> output_channels(const KernelContext& context,
                                  const Shape& filter,
                                  int64_t channels) const override {
    if (filter.dim(2) != channels)
      return context.fail("a filter {} does not fit {} input channels",
                          filter.to_string(), channels);
    return channels * filter.dim(3);
  }

 private:
  template <class W>
  Status run(KernelContext& context, const Shapes& all) const {
    const Shape& shape = role() == ConvRole::kForward    ? all.output
                         : role() == ConvRole::kToFilter ? all.filter
                                                         : all.input;
    TAGFLOW_ASSIGN(Tensor result, context.allocate_temp(kDataTypeOf<W>, shape));
    W* out = result.mutable_data<W>();
    if (all.input.num_elements() == 0 || all.output.num_elements() == 0) {
      std::fill_n(out, result.num_elements(), W(0));
    } else {
      // The inputs with positions, channels last, and the filter.
      Tensor in[3];
      for (int i = 0; i < context.num_inputs(); ++i) {
        const bool sizes = i == (role() == ConvRole::kToInput    ? 0
                                 : role() == ConvRole::kToFilter ? 1
                                                                 : -1);
        if (sizes) continue;
        in[i] = context.input(i);
        if (i != 1) {
          TAGFLOW_ASSIGN(in[i], to_channels_last(context, window(), in[i]));
        }
        TAGFLOW_ASSIGN(in[i], convert(context, in[i], kDataTypeOf<W>));
      }
      const Depthwise d{all.geometry, all.filter.dim(3)};
      if (role() == ConvRole::kForward)
        forward(context, d, in[0].data<W>(), in[1].data<W>(), out);
      else if (role() == ConvRole::kToInput)
        to_input(context, d, in[1].data<W>(), in[2].data<W>(), out);
      else
        to_filter(context, d, in[0].data<W>(), in[2].data<W>(), out);
    }
    if (role() != ConvRole::kToFilter)
      return set_output_from(context, window(), shape, result);
    TAGFLOW_ASSIGN(Tensor typed,
                   convert(context, result, context.node().output_dtypes()[0]));
    context.set_output(0, std::move(typed));
    return Status();
  }
};

}  // namespace

void register_depthwise_conv_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter"})
    registry.add<DepthwiseKernel>(
        op, {{"T",
              {DataType::kFloat, DataType::kDouble, DataType::kHalf,
               DataType::kBFloat16}}});
}

}  // namespace tagflow::devices
