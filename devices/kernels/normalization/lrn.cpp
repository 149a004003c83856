// Local response normalisation: each element divided by a power of the sum of
// squares of its neighbours among the channels.
#include <algorithm>
#include <cmath>

#include "devices/kernel_registry.h"
#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {
namespace {

class LrnKernel : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto kernel = std::make_unique<LrnKernel>();
    TAGFLOW_ASSIGN(kernel->radius_, info.attr<int64_t>("depth_radius"));
    TAGFLOW_ASSIGN(kernel->bias_, info.attr<float>("bias"));
    TAGFLOW_ASSIGN(kernel->alpha_, info.attr<float>("alpha"));
    TAGFLOW_ASSIGN(kernel->beta_, info.attr<float>("beta"));
    if (kernel->radius_ < 0)
      return invalid_argument("[{}] node \"{}\": depth_radius {} is negative",
                              info.node().op(), info.name(), kernel->radius_);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    // The input; or the gradient, the input and the output.
    const Shape shape = context.input(0).shape();
    Tensor in[3];
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& tensor = context.input(i);
      if (tensor.rank() != 4 || !(tensor.shape() == shape))
        return context.fail("input {} is {}, not of 4 dimensions as input 0", i,
                            tensor.describe());
      TAGFLOW_ASSIGN(in[i], convert(context, tensor, DataType::kFloat));
    }
    TAGFLOW_ASSIGN(Tensor out, context.allocate_temp(DataType::kFloat, shape));
    const int64_t channels = shape.dim(3);
    if (out.num_elements() > 0) {
      float* to = out.mutable_data<float>();
      const bool forward = context.num_inputs() == 1;
      context.parallel_for(
          out.num_elements() / channels, double(channels) * 20,
          [&](int64_t begin, int64_t end) {
            std::vector<float> norms(static_cast<size_t>(channels));
            for (int64_t i = begin * channels; i < end * channels;
                 i += channels) {
              const float* x = in[forward ? 0 : 1].data<float>() + i;
              find_norms(context, x, channels, norms.data());
              if (forward)
                for (int64_t c = 0; c < channels; ++c)
                  to[i + c] = x[c] * std::pow(norms[size_t(c)], -beta_);
              else
                differentiate(context, in[0].data<float>() + i, x,
                              in[2].data<float>() + i, norms.data(), channels,
                              to + i);
            }
          });
    }
    TAGFLOW_ASSIGN(Tensor typed,
                   convert(context, out, context.node().output_dtypes()[0]));
    context.set_output(0, std::move(typed));
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 200 + double(context.input(0).num_elements()) * 20;
  }

 private:
  // The neighbours of channel c: [first, last).
  int64_t first(int64_t c) const { return std::max<int64_t>(0, c - radius_); }
  int64_t last(int64_t c, int64_t channels) const {
    return radius_ >= channels - c ? channels : c + radius_ + 1;
  }

  void find_norms(const KernelContext& context, const float* x,
                  int64_t channels, float* norms) const {
    for (int64_t c = 0; c < channels; ++c) {
      context.check_cancelled();
      float sum = 0;
      for (int64_t j = first(c); j < last(c, channels); ++j) sum += x[j] * x[j];
      norms[c] = bias_ + alpha_ * sum;
    }
  }

  // Channel j affects the outputs of its neighbours k through their norms. An
  // output with a zero gradient adds nothing, even if its terms are infinite or
  // NaN.
  void differentiate(const KernelContext& context, const float* dy,
                     const float* x, const float* y, const float* norms,
                     int64_t channels, float* dx) const {
    std::fill_n(dx, channels, 0.0f);
    for (int64_t k = 0; k < channels; ++k) {
      context.check_cancelled();
      if (dy[k] == 0) continue;
      const float slope = -2 * alpha_ * beta_ * y[k] / norms[k] * dy[k];
      for (int64_t j = first(k); j < last(k, channels); ++j)
        dx[j] += x[j] * slope;
      dx[k] += std::pow(norms[k], -beta_) * dy[k];
    }
  }

  int64_t radius_ = 0;
  float bias_ = 1, alpha_ = 1, beta_ = 0.5f;
};

}  // namespace

void register_lrn_kernels(KernelRegistry& registry) {
  for (const char* op : {"LRN", "LRNGrad"})
    registry.add<LrnKernel>(
        op, {{"T", {DataType::kFloat, DataType::kHalf, DataType::kBFloat16}}});
}

}  // namespace tagflow::devices
