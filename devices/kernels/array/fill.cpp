// Fill, ZerosLike, OnesLike, Range, LinSpace: ops that generate elements.
#include <cmath>
#include <limits>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/containers/variant_arithmetic.h"

namespace tagflow::devices {

namespace {

// Whether it is a scalar, or, as in older graphs, a vector of one element.
bool is_scalar_or_single(const Tensor& tensor) {
  return tensor.rank() <= 1 && tensor.num_elements() == 1;
}

class FillKernel : public BytesKernel {
 public:
  explicit FillKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(1);
    if (!is_scalar_or_single(value))
      return context.fail("value must be a scalar, got {}", value.describe());
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(shape_vector(context, 0, "dims", dims));
    if (dims.empty()) {
      TAGFLOW_ASSIGN(context.output(0), value.reshaped({}));
      return {};
    }
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    fill_elements(context, value, *output);
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    auto bytes = double(dtype_size(context.input(1).dtype()));
    const Tensor& dims = context.input(0);
    for (int64_t i = 0; i < dims.num_elements(); ++i)
      bytes *= double(index_at(dims, i));
    return bytes;
  }
};

// For lists and other variants: each has its own zeros.
class ZerosLikeKernel : public BytesKernel {
 public:
  explicit ZerosLikeKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.05) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(context.output(0),
                   zeros_like_tensor(context, context.input(0), 0));
    return {};
  }
};

class OnesLikeKernel : public BytesKernel {
 public:
  explicit OnesLikeKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.05) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, context.input(0).shape()));
    auto fill = [&]<class T>(TypeTag<T>) {
      fill_elements(context, Tensor::scalar(T(1)), *output);
    };
    if (!visit_numeric(output->dtype(), fill))
      fill_elements(context, Tensor::scalar(true), *output);
    return {};
  }
};

// The number of values from start by delta before limit, for floats in the
// arithmetic of their type; InvalidArgument if they never reach it.
template <class T>
Result<int64_t> range_length(const KernelContext& context, T start, T limit,
                             T delta) {
  if (delta == T(0)) return context.fail("delta is zero");
  if constexpr (std::is_integral_v<T>) {
    // A 128-bit difference cannot overflow.
    __extension__ using Wide = __int128;
    const Wide from = start, to = limit, step = delta;
    if ((to > from && step < 0) || (to < from && step > 0))
      return context.fail("delta {} leads from {} away from {}", delta, start,
                          limit);
    const Wide size = step < 0 ? -step : step;
    const Wide distance = to < from ? from - to : to - from;
    const Wide length = distance / size + (distance % size != 0 ? 1 : 0);
    if (length > std::numeric_limits<int64_t>::max())
      return context.fail("the range has too many values");
    return int64_t(length);
  } else {
    const auto from = double(start), to = double(limit), step = double(delta);
    if ((to > from && step < 0) || (to < from && step > 0))
      return context.fail("delta {} leads from {} away from {}", step, from,
                          to);
    const T steps = T(limit - start) / delta;
    const double length = std::ceil(std::fabs(double(steps)));
    // False for NaN too.
    if (!(length < 9e18))
      return context.fail("a range from {} to {} by {} has no finite length",
                          from, to, step);
    return int64_t(length);
  }
}

class RangeKernel : public BytesKernel {
 public:
  explicit RangeKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    for (int i = 0; i < 3; ++i)
      if (!is_scalar_or_single(context.input(i)))
        return context.fail("input {} must be a scalar, got {}", i,
                            context.input(i).describe());
    Status status;
    visit_real(context.input(0).dtype(),
               [&]<class T>(TypeTag<T>) { status = run<T>(context); });
    return status;
  }

 private:
  template <class T>
  static Status run(KernelContext& context) {
    const T start = context.input(0).scalar_value<T>();
    const T limit = context.input(1).scalar_value<T>();
    const T delta = context.input(2).scalar_value<T>();
    TAGFLOW_ASSIGN(const int64_t length,
                   range_length(context, start, limit, delta));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {length}));
    T* values = output->mutable_data<T>();
    context.for_blocks(length, 1, [=](int64_t begin, int64_t end) {
      if constexpr (std::is_integral_v<T>) {
        for (int64_t i = begin; i < end; ++i)
          values[i] = T(uint64_t(start) + uint64_t(i) * uint64_t(delta));
      } else {
        for (int64_t i = begin; i < end; ++i)
          values[i] = start + T(float_index<T>(i)) * delta;
      }
    });
    return {};
  }
  template <class T>
  static auto float_index(int64_t i) {
    if constexpr (std::is_same_v<T, double>) {
      return double(i);
    } else {
      return float(i);
    }
  }

  double work_bytes(const KernelContext& context) const override {
    for (const Tensor& input : context.inputs())
      if (input.num_elements() != 1) return 0;
    double length = 0;
    visit_real(context.input(0).dtype(), [&]<class T>(TypeTag<T>) {
      const double from = double(context.input(0).scalar_value<T>());
      const double to = double(context.input(1).scalar_value<T>());
      length =
          std::fabs((to - from) / double(context.input(2).scalar_value<T>()));
    });
    return std::isfinite(length) ? 8 * length : 0;
  }
};

class LinSpaceKernel : public BytesKernel {
 public:
  explicit LinSpaceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}
  Status compute(KernelContext& context) const override {
    for (int i = 0; i < 3; ++i)
      if (!context.input(i).is_scalar())
        return context.fail("input {} must be a scalar, got {}", i,
                            context.input(i).describe());
    const int64_t num = index_at(context.input(2), 0);
    if (num <= 0) return context.fail("num must be positive, is {}", num);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {num}));
    visit_floating(output->dtype(), [&]<class T>(TypeTag<T>) {
      const T start = context.input(0).scalar_value<T>();
      const T stop = context.input(1).scalar_value<T>();
      T* values = output->mutable_data<T>();
      values[0] = start;
      if (num == 1) return;
      const T step = (stop - start) / T(float(num - 1));
      context.for_blocks(num - 2, 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin + 1; i <= end; ++i)
          values[i] = start + step * T(float(i));
      });
      values[num - 1] = stop;
    });
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const Tensor& num = context.input(2);
    return num.is_scalar() ? 8 * double(index_at(num, 0)) : 0;
  }
};

}  // namespace

void register_array_fill_kernels(KernelRegistry& registry) {
  registry.add<FillKernel>("Fill");
  registry.add<ZerosLikeKernel>("ZerosLike");
  registry.add<OnesLikeKernel>("OnesLike");
  registry.add<RangeKernel>("Range");
  registry.add<LinSpaceKernel>("LinSpace");
}

}  // namespace tagflow::devices
