// FusedBatchNorm, V1 to V3, and their gradients. The reserved outputs hold
// the mean and the biased variance of the batch (or, when not training, the
// given ones), which the gradients read.
#include <cmath>
#include <limits>

#include "devices/kernel_registry.h"
#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {
namespace {

// The averages of a batch without elements.
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Attributes of the forward op and of the gradient.
struct NormAttrs {
  float epsilon = 0;
  float factor = 1;  // weight of the batch in the running averages
  bool training = true;
  graph::WindowAttrs layout;
};

Result<NormAttrs> norm_attrs(const KernelInfo& info) {
  NormAttrs attrs;
  TAGFLOW_ASSIGN(attrs.epsilon, info.attr<float>("epsilon"));
  TAGFLOW_ASSIGN(attrs.training, info.attr<bool>("is_training"));
  TAGFLOW_ASSIGN(const std::string format,
                 info.attr<std::string>("data_format"));
  attrs.layout.rank = int(format.size());
  attrs.layout.channels_first = format[1] == 'C';
  if (info.node().attrs().contains("exponential_avg_factor")) {
    TAGFLOW_ASSIGN(attrs.factor, info.attr<float>("exponential_avg_factor"));
  }
  return attrs;
}

// A tensor as [rows, channels].
struct Rows {
  int64_t count = 0, channels = 0;
};

// The layout of x, which must have 4 or 5 dimensions. Its data format gives
// only the position of the channels: as in TensorFlow, its length need not
// match if shapes were not known in advance.
Result<graph::WindowAttrs> layout_of(const KernelContext& context,
                                     const NormAttrs& attrs, const Tensor& x) {
  graph::WindowAttrs layout = attrs.layout;
  if (x.rank() != 4 && x.rank() != 5)
    return context.fail("x is {}, not of 4 or 5 dimensions", x.describe());
  layout.rank = x.rank();
  return layout;
}

Rows rows_of(const graph::WindowAttrs& layout, const Tensor& x) {
  Rows rows;
  rows.channels = x.dim(layout.channel_dim());
  if (rows.channels > 0) rows.count = x.num_elements() / rows.channels;
  return rows;
}

Status check_vector(const KernelContext& context, int input, int64_t channels) {
  const Tensor& vector = context.input(input);
  if (vector.rank() == 1 && vector.dim(0) == channels) return Status();
  return context.fail("input {} is {}, not a vector of {}", input,
                      vector.describe(), channels);
}

// Sums over rows, `width` of them at once: body(begin, end, sums) adds the sums
// of rows [begin, end). The parts depend on the shape, not on the workers.
template <class Body>
std::vector<double> sum_rows(const KernelContext& context, const Rows& rows,
                             int64_t width, Body&& body) {
  const int64_t parts =
      std::clamp<int64_t>(rows.count * rows.channels / 4096, 1, 32);
  std::vector<double> sums(size_t(parts * width));
  const double cost =
      double(rows.count) * double(rows.channels) / double(parts);
  context.parallel_for(parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      body(rows.count * part / parts, rows.count * (part + 1) / parts,
           sums.data() + part * width);
  });
  for (int64_t i = width; i < parts * width; ++i)
    sums[size_t(i % width)] += sums[size_t(i)];
  return sums;
}

Result<Tensor> prepared(const KernelContext& context,
                        const graph::WindowAttrs& layout, const Tensor& x) {
  TAGFLOW_ASSIGN(const Tensor last, to_channels_last(context, layout, x));
  return convert(context, last, DataType::kFloat);
}

// out[row][c] = body(row's element, c) for all rows.
template <class Body>
void map_rows(const KernelContext& context, const Rows& rows, const float* in,
              float* out, Body&& body) {
  context.parallel_for(rows.count, double(rows.channels),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin * rows.channels;
                              i < end * rows.channels; i += rows.channels)
                           for (int64_t c = 0; c < rows.channels; ++c)
                             out[i + c] = body(in[i + c], i, c);
                       });
}

class BatchNormKernel : public Kernel {
 public:
  explicit BatchNormKernel(NormAttrs attrs) : attrs_(std::move(attrs)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(NormAttrs attrs, norm_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<BatchNormKernel>(std::move(attrs)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    TAGFLOW_ASSIGN(const auto layout, layout_of(context, attrs_, x));
    const Rows rows = rows_of(layout, x);
    for (int i = 1; i < 5; ++i)
      if (context.input(i).rank() != 1)
        return context.fail("input {} is {}, not a vector", i,
                            context.input(i).describe());
    // Running averages are checked only if they affect the result.
    const int used = attrs_.training && attrs_.factor == 1 ? 3 : 5;
    for (int i = 1; i < used; ++i)
      TAGFLOW_RETURN_IF_ERROR(check_vector(context, i, rows.channels));
    for (int i = 1; i < 5; ++i)
      TAGFLOW_RETURN_IF_ERROR(
          context.allocate_output(i, Shape{rows.channels}).status());
    // A placeholder for reserved space of GPUs. TensorFlow's own kernels return
    // a scalar here, oneDNN's an empty vector.
    if (context.num_outputs() == 6) context.set_output(5, Tensor::scalar(0.0f));
    TAGFLOW_ASSIGN(const Tensor in, prepared(context, layout, x));
    if (attrs_.training)
      measure(context, rows, in.data<float>());
    else
      copy_given(context, rows);
    TAGFLOW_ASSIGN(Tensor out,
                   context.allocate_temp(DataType::kFloat, in.shape()));
    normalise(context, rows, in.data<float>(), out.mutable_data<float>());
    return set_output_from(context, layout, x.shape(), out);
  }

  double cost(const KernelContext& context) const override {
    return 500 + double(context.input(0).num_elements()) * 3;
  }

 private:
  // Sets outputs 1 to 4 from the batch.
  void measure(KernelContext& context, const Rows& rows,
               const float* in) const {
    const int64_t n = rows.count, channels = rows.channels;
    const double count = double(n);
    auto mean = sum_rows(context, rows, channels,
                         [&](int64_t begin, int64_t end, double* sums) {
                           for (int64_t i = begin; i < end; ++i)
                             for (int64_t c = 0; c < channels; ++c)
                               sums[c] += in[i * channels + c];
                         });
    for (double& sum : mean) sum = n == 0 ? 0 : sum / count;
    auto variance = sum_rows(
        context, rows, channels, [&](int64_t begin, int64_t end, double* sums) {
          for (int64_t i = begin; i < end; ++i)
            for (int64_t c = 0; c < channels; ++c) {
              const double d = in[i * channels + c] - mean[size_t(c)];
              sums[c] += d * d;
            }
        });
    for (int64_t c = 0; c < channels; ++c) {
      const double biased = n == 0 ? 0 : variance[size_t(c)] / count;
      const double unbiased =
          n == 0 ? kNone : biased * count / std::max(1.0, count - 1);
      const double center = n == 0 ? kNone : mean[size_t(c)];
      at(context, 3, c) = float(mean[size_t(c)]);
      at(context, 4, c) = float(biased);
      at(context, 1, c) = blended(context, 3, c, center);
      at(context, 2, c) = blended(context, 4, c, unbiased);
    }
  }

  // The new running average, from the old one in an input.
  float blended(const KernelContext& context, int old, int64_t c,
                double value) const {
    if (attrs_.factor == 1) return float(value);
    return float((1 - double(attrs_.factor)) *
                     context.input(old).data<float>()[c] +
                 double(attrs_.factor) * value);
  }

  // Sets these outputs from the inputs; for an empty batch as measure() does,
  // as in TensorFlow.
  static void copy_given(KernelContext& context, const Rows& rows) {
    for (int i : {1, 2})
      for (int64_t c = 0; c < rows.channels; ++c) {
        const float given = context.input(i + 2).data<float>()[c];
        at(context, i, c) = rows.count == 0 ? kNone : given;
        at(context, i + 2, c) = rows.count == 0 ? 0 : given;
      }
  }

  // y from the mean and variance in outputs 3 and 4.
  void normalise(KernelContext& context, const Rows& rows, const float* in,
                 float* out) const {
    std::vector<float> factor(size_t(rows.channels));
    for (int64_t c = 0; c < rows.channels; ++c)
      factor[size_t(c)] = context.input(1).data<float>()[c] /
                          std::sqrt(at(context, 4, c) + attrs_.epsilon);
    const float* offset = context.input(2).data<float>();
    const float* mean = context.output(3).data<float>();
    map_rows(context, rows, in, out, [&](float x, int64_t, int64_t c) {
      return (x - mean[c]) * factor[size_t(c)] + offset[c];
    });
  }

  static float& at(KernelContext& context, int output, int64_t c) {
    return context.output(output).mutable_data<float>()[c];
  }

  NormAttrs attrs_;
};

class BatchNormGradKernel : public Kernel {
 public:
  explicit BatchNormGradKernel(NormAttrs attrs) : attrs_(std::move(attrs)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(NormAttrs attrs, norm_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<BatchNormGradKernel>(std::move(attrs)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(1);
    TAGFLOW_ASSIGN(const auto layout, layout_of(context, attrs_, x));
    const Rows rows = rows_of(layout, x);
    if (!(context.input(0).shape() == x.shape()))
      return context.fail("y_backprop is {}, x is {}",
                          context.input(0).describe(), x.describe());
    for (int i = 2; i < 5; ++i)
      TAGFLOW_RETURN_IF_ERROR(check_vector(context, i, rows.channels));
    for (int i : {1, 2})
      TAGFLOW_RETURN_IF_ERROR(
          context.allocate_output(i, Shape{rows.channels}).status());
    // Empty outputs: the mean and the variance have no gradients.
    for (int i : {3, 4})
      TAGFLOW_RETURN_IF_ERROR(context.allocate_output(i, Shape{0}).status());
    TAGFLOW_ASSIGN(const Tensor in, prepared(context, layout, x));
    TAGFLOW_ASSIGN(const Tensor grad,
                   prepared(context, layout, context.input(0)));
    TAGFLOW_ASSIGN(Tensor out,
                   context.allocate_temp(DataType::kFloat, in.shape()));
    differentiate(context, rows, in.data<float>(), grad.data<float>(),
                  out.mutable_data<float>());
    return set_output_from(context, layout, x.shape(), out);
  }

  double cost(const KernelContext& context) const override {
    return 500 + double(context.input(1).num_elements()) * 3;
  }

 private:
  void differentiate(KernelContext& context, const Rows& rows, const float* in,
                     const float* grad, float* out) const {
    const int64_t channels = rows.channels;
    const float* scale = context.input(2).data<float>();
    const float* mean = context.input(3).data<float>();
    const float* variance = context.input(4).data<float>();
    // Sums of dy, then of dy (x - mean).
    const auto sums = sum_rows(
        context, rows, 2 * channels,
        [&](int64_t begin, int64_t end, double* sum) {
          for (int64_t i = begin * channels; i < end * channels; i += channels)
            for (int64_t c = 0; c < channels; ++c) {
              sum[c] += grad[i + c];
              sum[channels + c] +=
                  double(grad[i + c]) * (double(in[i + c]) - mean[c]);
            }
        });
    // dx = factor (dy - shift - slope (x - mean)); the last two terms come from
    // the derivatives of the batch's mean and variance.
    std::vector<float> factor(static_cast<size_t>(channels));
    std::vector<float> shift(factor.size()), slope(factor.size());
    for (int64_t c = 0; c < channels; ++c) {
      const double spread = double(variance[c]) + attrs_.epsilon;
      const double root = 1 / std::sqrt(spread);
      const auto i = size_t(c);
      factor[i] = float(scale[c] * root);
      if (attrs_.training && rows.count > 0) {
        shift[i] = float(sums[i] / double(rows.count));
        slope[i] =
            float(sums[i + size_t(channels)] / double(rows.count) / spread);
      }
      // The sum of no elements is 0, for any factor.
      context.output(1).mutable_data<float>()[c] =
          rows.count == 0 ? 0 : float(sums[i + size_t(channels)] * root);
      context.output(2).mutable_data<float>()[c] = float(sums[i]);
    }
    // Given averages are constant, however far x is from them.
    if (!attrs_.training) {
      map_rows(context, rows, grad, out, [&](float dy, int64_t, int64_t c) {
        return factor[size_t(c)] * dy;
      });
      return;
    }
    map_rows(context, rows, in, out, [&](float x, int64_t row, int64_t c) {
      const auto i = size_t(c);
      return factor[i] * (grad[row + c] - shift[i] - slope[i] * (x - mean[c]));
    });
  }

  NormAttrs attrs_;
};

}  // namespace

void register_batch_norm_kernels(KernelRegistry& registry) {
  const std::vector<DataType> single = {DataType::kFloat};
  const std::vector<DataType> types = {DataType::kFloat, DataType::kHalf,
                                       DataType::kBFloat16};
  registry.add<BatchNormKernel>("FusedBatchNorm", {{"T", single}});
  registry.add<BatchNormGradKernel>("FusedBatchNormGrad", {{"T", single}});
  for (const char* version : {"V2", "V3"}) {
    const std::string suffix = version;
    registry.add<BatchNormKernel>("FusedBatchNorm" + suffix,
                                  {{"T", types}, {"U", single}});
    registry.add<BatchNormGradKernel>("FusedBatchNormGrad" + suffix,
                                      {{"T", types}, {"U", single}});
  }
}

}  // namespace tagflow::devices
