// Cross: the cross product of vectors of 3 elements.
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

template <class T>
class CrossKernel : public BytesKernel {
 public:
  explicit CrossKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.5) {}

  Status compute(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    if (!(a.shape() == b.shape()) || a.rank() == 0)
      return context.fail("{} and {} must be vectors of the same shape",
                          a.describe(), b.describe());
    if (a.dim(a.rank() - 1) != 3)
      return error(Code::kFailedPrecondition,
                   "[Cross] {} does not consist of vectors of 3 elements",
                   a.describe());
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, a.shape()));
    const T* x = a.data<T>();
    const T* y = b.data<T>();
    T* to = out->mutable_data<T>();
    context.for_blocks(
        a.num_elements() / 3, 5, [&](int64_t begin, int64_t end) {
          for (int64_t i = 3 * begin; i < 3 * end; i += 3)
            for (int64_t k = 0; k < 3; ++k) {
              const int64_t m = i + (k + 1) % 3, n = i + (k + 2) % 3;
              to[i + k] = minus(times(x[m], y[n]), times(x[n], y[m]));
            }
        });
    return {};
  }

 private:
  // Each step is rounded, or wraps around, separately.
  static T times(T a, T b) { return T(Accumulator<T>(a) * Accumulator<T>(b)); }
  static T minus(T a, T b) { return T(Accumulator<T>(a) - Accumulator<T>(b)); }
};

}  // namespace

void register_linalg_cross_kernels(KernelRegistry& registry) {
  for_each_real([&]<class T>(TypeTag<T>) {
    registry.add<CrossKernel<T>>("Cross", {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
