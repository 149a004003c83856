// Bucketize, NthElement: the ranks of elements.
#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// The number of boundaries that are not above the element.
class BucketizeKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto boundaries = attr_of<std::vector<float>>(info, "boundaries");
    // Also rejects NaN.
    for (size_t i = 1; i < boundaries.size(); ++i)
      if (!(boundaries[i - 1] <= boundaries[i]))
        return invalid_argument(
            "[Bucketize] boundaries must ascend, but {} comes before {}",
            boundaries[i - 1], boundaries[i]);
    return std::unique_ptr<Kernel>(new BucketizeKernel(std::move(boundaries)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    auto* buckets = output->mutable_data<int32_t>();
    visit_real(input.dtype(), [&]<class T>(TypeTag<T>) {
      const T* values = input.data<T>();
      context.parallel_for(
          input.num_elements(), kNanoseconds, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              buckets[i] =
                  int32_t(std::upper_bound(boundaries_.begin(),
                                           boundaries_.end(), values[i]) -
                          boundaries_.begin());
          });
    });
    return {};
  }

  double cost(const KernelContext& context) const override {
    return kNanoseconds * double(context.input(0).num_elements());
  }

 private:
  static constexpr double kNanoseconds = 10;

  explicit BucketizeKernel(std::vector<float> boundaries)
      : boundaries_(std::move(boundaries)) {}

  const std::vector<float> boundaries_;
};

// The element of each row that would be at place n if the row were sorted. NaN
// comes last.
class NthElementKernel final : public BytesKernel {
 public:
  explicit NthElementKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2),
        is_reversed_(attr_of<bool>(info, "reverse")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() < 1)
      return context.fail("input must be at least a vector, got {}",
                          input.describe());
    TAGFLOW_ASSIGN(int64_t n, index_scalar(context, 1, "n"));
    const int64_t size = input.dim(input.rank() - 1);
    if (n < 0 || n >= size)
      return context.fail("n {} is outside [0, {}) of {}", n, size,
                          input.describe());
    if (is_reversed_) n = size - n - 1;
    Shape shape = input.shape();
    shape.remove_dim(shape.rank() - 1);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    visit_real(input.dtype(), [&]<class T>(TypeTag<T>) {
      const auto is_before = [&context](T a, T b) {
        context.check_cancelled();
        return a < b || (b != b && a == a);
      };
      std::vector<T> row;
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        const T* from = input.data<T>() + i * size;
        row.assign(from, from + size);
        std::nth_element(row.begin(), row.begin() + n, row.end(), is_before);
        output->mutable_data<T>()[i] = row[size_t(n)];
      }
    });
    return {};
  }

 private:
  const bool is_reversed_;
};

}  // namespace

void register_bucket_kernels(KernelRegistry& registry) {
  registry.add<BucketizeKernel>("Bucketize");
  registry.add<NthElementKernel>("NthElement");
}

}  // namespace tagflow::devices
