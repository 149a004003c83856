// Softmax and LogSoftmax.
#include "devices/kernels/activation/softmax.h"

#include <cmath>
#include <vector>

#include "devices/kernel_registry.h"
#include "graph/float16.h"

namespace tagflow::devices {
namespace {

template <class T>
class SoftmaxKernel : public Kernel {
  using W = SoftmaxWork<T>;

 public:
  explicit SoftmaxKernel(const KernelInfo& info)
      : logarithm_(info.node().op() == "LogSoftmax") {}

  Status compute(KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    if (logits.rank() == 0)
      return context.fail("the logits are a scalar; they must have classes");
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, logits.shape()));
    if (logits.num_elements() == 0) return Status();
    const int64_t classes = logits.dim(logits.rank() - 1);
    const T* in = logits.data<T>();
    T* to = out->mutable_data<T>();
    context.parallel_for(
        logits.num_elements() / classes, 10 + 2 * double(classes),
        [&](int64_t begin, int64_t end) {
          std::vector<W> buffer(size_t(classes) * 2);
          for (int64_t i = begin; i < end; ++i)
            row(in + i * classes, classes, buffer.data(), to + i * classes);
        });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 2;
  }

 private:
  void row(const T* in, int64_t classes, W* buffer, T* out) const {
    W* exps = buffer + classes;
    const W sum = exp_row(in, classes, buffer, exps);
    if (logarithm_) {
      const W log_sum = std::log(sum);
      for (int64_t j = 0; j < classes; ++j)
        out[j] = static_cast<T>(buffer[j] - log_sum);
    } else {
      const W factor = 1 / sum;
      for (int64_t j = 0; j < classes; ++j)
        out[j] = static_cast<T>(exps[j] * factor);
    }
  }

  bool logarithm_;
};

template <class T>
void add(KernelRegistry& registry) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    registry.add<SoftmaxKernel<T>>(op, {{"T", {kDataTypeOf<T>}}});
}

}  // namespace

void register_softmax_kernels(KernelRegistry& registry) {
  add<float>(registry);
  add<double>(registry);
  add<Half>(registry);
  add<BFloat16>(registry);
}

}  // namespace tagflow::devices
