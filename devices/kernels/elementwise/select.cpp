// Select, SelectV2, ClipByValue.
#include <algorithm>

#include "devices/broadcast.h"
#include "devices/copy.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// z[i] = c[i] ? x(i) : y(i). Plain elements are read whether selected or not,
// which avoids mispredicted branches.
template <class T, class X, class Y>
void choose_each(const ElementWriter<T>& writer, const bool* c, int64_t n, T* z,
                 X x, Y y) {
  if constexpr (std::is_trivially_copyable_v<T>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T a = x(i), b = y(i);
      z[i] = c[i] ? a : b;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) writer.assign(z[i], c[i] ? x(i) : y(i));
  }
}

// z[i] = c[i] ? x[i] : y[i]; an operand that does not move is read at its
// first element only.
template <class T>
void select_row(const ElementWriter<T>& writer, const bool* c, bool c_moves,
                const T* x, bool x_moves, const T* y, bool y_moves, T* z,
                int64_t n) {
  if (!c_moves) {
    const T* chosen = *c ? x : y;
    if (*c ? x_moves : y_moves) {
      writer.copy(chosen, n, z);
    } else {
      writer.fill(z, n, *chosen);
    }
  } else if (x_moves && y_moves) {
    choose_each(
        writer, c, n, z, [=](int64_t i) -> const T& { return x[i]; },
        [=](int64_t i) -> const T& { return y[i]; });
  } else if (x_moves) {
    choose_each(
        writer, c, n, z, [=](int64_t i) -> const T& { return x[i]; },
        [=](int64_t) -> const T& { return *y; });
  } else if (y_moves) {
    choose_each(
        writer, c, n, z, [=](int64_t) -> const T& { return *x; },
        [=](int64_t i) -> const T& { return y[i]; });
  } else {
    choose_each(
        writer, c, n, z, [=](int64_t) -> const T& { return *x; },
        [=](int64_t) -> const T& { return *y; });
  }
}

template <class T>
void select_all(const KernelContext& context, const BroadcastPlan& plan,
                Tensor& out) {
  const bool* c = context.input(0).data<bool>();
  const T* x = context.input(1).data<T>();
  const T* y = context.input(2).data<T>();
  T* z = out.mutable_data<T>();
  const ElementWriter<T> writer(out);
  const int64_t n = plan.row_size();
  const auto body = [&](int64_t begin, int64_t end) {
    plan.for_each_row(begin, end, [&](int64_t row, const auto& at) {
      select_row(writer, c + at[0], plan.moves(0), x + at[1], plan.moves(1),
                 y + at[2], plan.moves(2), z + row * n, n);
    });
  };
  // One long row, the usual case, is divided into pieces.
  if (plan.rows() == 1) {
    context.parallel_for(n, 0.5, [&](int64_t begin, int64_t end) {
      const auto at = [&](int operand) {
        return plan.moves(size_t(operand)) ? begin : 0;
      };
      select_row(writer, c + at(0), plan.moves(0), x + at(1), plan.moves(1),
                 y + at(2), plan.moves(2), z + begin, end - begin);
    });
  } else {
    context.parallel_for(plan.rows(), 0.5 * double(n), body);
  }
}

class SelectBase : public Kernel {
 public:
  double cost(const KernelContext& context) const final {
    return 0.5 * double(std::max(context.input(1).num_elements(),
                                 context.input(2).num_elements()));
  }

 protected:
  // A scalar condition and values of one shape: nothing is copied.
  static void choose(KernelContext& context) {
    const int chosen = *context.input(0).data<bool>() ? 1 : 2;
    context.set_output(0, context.input(chosen));
  }

  // Broadcasts the condition as if it had shape `c`.
  static Status select(KernelContext& context, const Shape& c, const Shape& x,
                       const Shape& y, const Shape& result) {
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, result));
    if (out->num_elements() == 0) return {};
    const BroadcastPlan plan(result, {&c, &x, &y});
    const bool known = visit_movable(out->dtype(), [&]<class T>(TypeTag<T>) {
      select_all<T>(context, plan, *out);
    });
    if (known) return {};
    return context.fail("elements of type {} cannot be selected",
                        dtype_name(out->dtype()));
  }
};

// The condition has the values' shape, is a scalar, or selects whole rows.
class SelectKernel final : public SelectBase {
 public:
  explicit SelectKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& condition = context.input(0);
    const Tensor& x = context.input(1);
    const Tensor& y = context.input(2);
    if (!same_dims(x, y))
      return context.fail("the values must have one shape, not {} and {}",
                          x.describe(), y.describe());
    if (condition.is_scalar()) {
      choose(context);
      return {};
    }
    Shape c = condition.shape();
    const Shape shape = x.shape();
    const bool rows = c.rank() == 1 && shape.rank() > 1;
    if (rows ? c.dim(0) != shape.dim(0) : !(c == shape))
      return context.fail(
          "the condition must be a scalar, a vector of as many elements as the "
          "values have rows, or of their shape {}, not {}",
          shape.to_string(), c.to_string());
    while (c.rank() < shape.rank()) c.add_dim(1);
    return select(context, c, shape, shape, shape);
  }
};

class SelectV2Kernel final : public SelectBase {
 public:
  explicit SelectV2Kernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    if (context.input(0).is_scalar() &&
        same_dims(context.input(1), context.input(2))) {
      choose(context);
      return {};
    }
    const Shape c = context.input(0).shape();
    const Shape x = context.input(1).shape();
    const Shape y = context.input(2).shape();
    const Result<Shape> shape = broadcast_shapes({&c, &x, &y});
    if (!shape.ok())
      return context.fail("{}, of condition {}, t {}, e {}",
                          shape.status().message(), c.to_string(),
                          x.to_string(), y.to_string());
    return select(context, c, x, y, *shape);
  }
};

// max(min(x, high), low); NaN stays NaN.
template <class T>
T clip(T x, T low, T high) {
  const T below = high < x ? high : x;
  return below < low ? low : below;
}

// Complex numbers are clipped in each part.
template <class T>
std::complex<T> clip(std::complex<T> x, std::complex<T> low,
                     std::complex<T> high) {
  return {clip(x.real(), low.real(), high.real()),
          clip(x.imag(), low.imag(), high.imag())};
}

template <class T>
class ClipKernel final : public Kernel {
 public:
  explicit ClipKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& low = context.input(1);
    const Tensor& high = context.input(2);
    for (const Tensor* limit : {&low, &high})
      if (!limit->is_scalar() && !same_dims(*limit, x))
        return context.fail(
            "limits must be scalars or of the value's shape {}, not {} and {}",
            x.shape().to_string(), low.shape().to_string(),
            high.shape().to_string());
    if (x.is_inline_scalar()) {
      context.set_output(0, Tensor::scalar(clip(*x.data<T>(), *low.data<T>(),
                                                *high.data<T>())));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out, context.forward_or_allocate(0, 0, x.shape()));
    const T* values = x.data<T>();
    T* results = out->mutable_data<T>();
    context.parallel_for(x.num_elements(), 0.5,
                         [&](int64_t begin, int64_t end) {
                           clip_range(values, low, high, results, begin, end);
                         });
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 0.5 * double(context.input(0).num_elements());
  }

 private:
  static void clip_range(const T* x, const Tensor& low, const Tensor& high,
                         T* z, int64_t begin, int64_t end) {
    const T* lows = low.data<T>();
    const T* highs = high.data<T>();
    if (low.is_scalar() && high.is_scalar()) {
      const T least = *lows, most = *highs;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) z[i] = clip(x[i], least, most);
    } else {
      const int64_t low_step = low.is_scalar() ? 0 : 1;
      const int64_t high_step = high.is_scalar() ? 0 : 1;
      for (int64_t i = begin; i < end; ++i)
        z[i] = clip(x[i], lows[i * low_step], highs[i * high_step]);
    }
  }
};

template <class... Ts>
void add_clip(KernelRegistry& registry, Types<Ts...>) {
  (add_kernel(registry, "ClipByValue", kDataTypeOf<Ts>,
              make_kernel<ClipKernel<Ts>>),
   ...);
}

}  // namespace

void register_select_kernels(KernelRegistry& registry) {
  registry.add<SelectKernel>("Select");
  registry.add<SelectV2Kernel>("SelectV2");
  add_clip(registry, FloatingTypes());
  add_clip(registry, SignedIntegers());
  add_clip(registry, UnsignedIntegers());
  add_clip(registry, ComplexTypes());
}

}  // namespace tagflow::devices
