// BiasAdd and BiasAddGrad.
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/channels.h"
#include "devices/kernels/reduction/loops.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

Result<bool> channels_first(const KernelInfo& info) {
  if (info.node().op() == "BiasAddV1") return false;
  TAGFLOW_ASSIGN(const std::string format,
                 info.attr<std::string>("data_format"));
  return format == "NCHW";
}

Result<Channels> split_channels(const KernelContext& context,
                                const Tensor& value, bool first) {
  if (value.rank() < 2)
    return context.fail("the value is {}, of fewer than two dimensions",
                        value.describe());
  Channels channels;
  const int at = first ? 1 : value.rank() - 1;
  channels.count = value.dim(at);
  if (value.num_elements() == 0) return channels;
  for (int i = 0; i < value.rank(); ++i)
    if (i != at) (i < at ? channels.outer : channels.inner) *= value.dim(i);
  return channels;
}

ReductionPlan channel_sums(const Channels& c, int64_t num_elements) {
  ReductionPlan plan;
  plan.output_shape = Shape{c.count};
  plan.kept_count = c.count;
  plan.reduced_count = num_elements == 0 ? 0 : c.outer * c.inner;
  if (c.outer > 1) plan.reduced.push_back({c.outer, c.count * c.inner});
  if (c.inner > 1) plan.reduced.push_back({c.inner, 1});
  if (c.count > 1) plan.kept.push_back({c.count, c.inner});
  plan.ends_reduced = c.inner > 1 || c.count == 1;
  return plan;
}

namespace {

template <class T>
class BiasAddKernel : public Kernel {
 public:
  explicit BiasAddKernel(bool first) : channels_first_(first) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const bool first, channels_first(info));
    return std::unique_ptr<Kernel>(std::make_unique<BiasAddKernel>(first));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(0);
    const Tensor& bias = context.input(1);
    TAGFLOW_ASSIGN(const Channels c,
                   split_channels(context, value, channels_first_));
    if (bias.rank() != 1 || bias.dim(0) != c.count)
      return context.fail("the bias is {}, not a vector of {} for {}",
                          bias.describe(), c.count, value.describe());
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, value.shape()));
    if (value.num_elements() == 0) return Status();
    const T* in = value.data<T>();
    const T* offset = bias.data<T>();
    T* to = out->mutable_data<T>();
    context.parallel_for(c.outer, double(c.count * c.inner) * 0.3,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             add_row(in + i * c.count * c.inner, offset, c,
                                     to + i * c.count * c.inner);
                         });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 50 + double(context.input(0).num_elements()) * 0.3;
  }

 private:
  using Acc = Accumulator<T>;

  static T sum(T a, T b) {
    return static_cast<T>(static_cast<Acc>(a) + static_cast<Acc>(b));
  }

  static void add_row(const T* in, const T* bias, const Channels& c, T* out) {
    if (c.inner == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < c.count; ++j) out[j] = sum(in[j], bias[j]);
      return;
    }
    for (int64_t j = 0; j < c.count; ++j, in += c.inner, out += c.inner) {
      const T offset = bias[j];
#pragma GCC ivdep
      for (int64_t l = 0; l < c.inner; ++l) out[l] = sum(in[l], offset);
    }
  }

  bool channels_first_;
};

template <class T>
class BiasAddGradKernel : public Kernel {
 public:
  explicit BiasAddGradKernel(bool first) : channels_first_(first) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const bool first, channels_first(info));
    return std::unique_ptr<Kernel>(std::make_unique<BiasAddGradKernel>(first));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(0);
    TAGFLOW_ASSIGN(const Channels c,
                   split_channels(context, value, channels_first_));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, Shape{c.count}));
    const ReductionPlan plan = channel_sums(c, value.num_elements());
    reduce(context, plan, kReductionLoops<SumOp<T>>, value.raw(),
           out->mutable_raw());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.2;
  }

 private:
  bool channels_first_;
};

}  // namespace

void register_bias_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    for (const char* op : {"BiasAdd", "BiasAddV1"})
      registry.add<BiasAddKernel<T>>(op, {{"T", {kDataTypeOf<T>}}});
    registry.add<BiasAddGradKernel<T>>("BiasAddGrad",
                                       {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
