// Cast, Bitcast, ToBool.
#include "devices/kernels/elementwise/cast.h"

#include <algorithm>

#include "devices/kernels/elementwise/registration.h"
#include "graph/storage_type.h"

namespace tagflow::devices {

namespace {

// Types with their own rows. The others are cast through one of these: 16-bit
// floats through float, complex numbers through the type of their parts.
DataType core_type(DataType t) {
  switch (t) {
    case DataType::kHalf:
    case DataType::kBFloat16:
    case DataType::kComplex64:
      return DataType::kFloat;
    case DataType::kComplex128:
      return DataType::kDouble;
    default:
      return t;
  }
}

template <class T>
void widen_row(const void* x, void* z, int64_t n) {
  widen(static_cast<const T*>(x), static_cast<float*>(z), n);
}

template <class T>
void narrow_row(const void* x, void* z, int64_t n) {
  narrow(static_cast<const float*>(x), static_cast<T*>(z), n);
}

// To the real parts.
template <class T>
void real_row(const void* x, void* z, int64_t n) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<typename T::value_type*>(z);
  for (int64_t i = 0; i < n; ++i) to[i] = from[i].real();
}

template <class From, class To>
void complex_row(const void* x, void* z, int64_t n) {
  const auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(z);
  for (int64_t i = 0; i < n; ++i) to[i] = To(from[i]);
}

// Casts to core_type(t); null if t is that type.
CastRow widen_row_of(DataType t) {
  switch (t) {
    case DataType::kHalf:
      return widen_row<Half>;
    case DataType::kBFloat16:
      return widen_row<BFloat16>;
    case DataType::kComplex64:
      return real_row<Complex64>;
    case DataType::kComplex128:
      return real_row<Complex128>;
    default:
      return nullptr;
  }
}

CastRow narrow_row_of(DataType t) {
  switch (t) {
    case DataType::kHalf:
      return narrow_row<Half>;
    case DataType::kBFloat16:
      return narrow_row<BFloat16>;
    case DataType::kComplex64:
      return complex_row<float, Complex64>;
    case DataType::kComplex128:
      return complex_row<double, Complex128>;
    default:
      return nullptr;
  }
}

// One cast as a sequence of up to four rows.
struct CastPlan {
  CastRow rows[4];
  int count = 0;

  void add(CastRow row) {
    if (row != nullptr) rows[count++] = row;
  }
};

// Empty if this cast does not exist.
CastPlan plan_cast(DataType from, DataType to, bool truncates) {
  CastPlan plan;
  if (from == DataType::kComplex64 && to == DataType::kComplex128) {
    plan.add(complex_row<Complex64, Complex128>);
  } else if (from == DataType::kComplex128 && to == DataType::kComplex64) {
    plan.add(complex_row<Complex128, Complex64>);
  } else {
    const DataType core_from = core_type(from), core_to = core_type(to);
    const CastRow core = core_cast_row(core_from, core_to);
    if (core == nullptr) return plan;
    plan.add(widen_row_of(from));
    if (truncates) plan.add(truncate_row(core_from, to));
    if (core_from != core_to || plan.count == 0) plan.add(core);
    plan.add(narrow_row_of(to));
  }
  return plan;
}

class CastKernel final : public Kernel {
 public:
  CastKernel(const CastPlan& plan, DataType from, DataType to)
      : plan_(plan),
        in_size_(dtype_size(from)),
        out_size_(dtype_size(to)),
        scalar_(Tensor::make(to, {})) {
    // Used only if it is the whole cast: then nothing is truncated in between.
    if (plan.count == 1) shortcut_ = core_cast_scalar(from, to);
  }

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const DataType from = info.input_dtype(0), to = info.output_dtype(0);
    if (from == to) return make_kernel<SameTypeKernel>(info);
    TAGFLOW_ASSIGN(const bool truncates, info.attr<bool>("Truncate"));
    // Quantized numbers are cast as the integers that store them.
    const CastPlan plan =
        plan_cast(storage_type(from), storage_type(to), truncates);
    if (plan.count == 0)
      return error(Code::kUnimplemented,
                   "[Cast] node \"{}\": there is no cast from {} to {}",
                   info.name(), dtype_name(from), dtype_name(to));
    return std::unique_ptr<Kernel>(
        std::make_unique<CastKernel>(plan, from, to));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    if (x.is_inline_scalar()) {
      Tensor result = scalar_;
      cast_chunk(x.raw(), result.mutable_raw(), 1);
      context.set_output(0, std::move(result));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, x.shape()));
    const auto* from = static_cast<const std::byte*>(x.raw());
    auto* to = static_cast<std::byte*>(out->mutable_raw());
    const auto body = [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += kChunk)
        cast_chunk(from + size_t(begin) * in_size_,
                   to + size_t(begin) * out_size_,
                   std::min(kChunk, end - begin));
    };
    const int64_t count = x.num_elements();
    if (count <= kChunk) {
      body(0, count);
    } else {
      context.parallel_for(count, element_cost(), body);
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    return element_cost() * double(context.input(0).num_elements());
  }
  bool may_be_expensive_on_small_inputs() const override { return false; }
  ScalarFunction scalar_function() const override { return shortcut_; }

 private:
  // A cast to the same type.
  class SameTypeKernel final : public CheapKernel {
   public:
    explicit SameTypeKernel(const KernelInfo&) {}
    Status compute(KernelContext& context) const override {
      context.set_output(0, context.input(0));
      return {};
    }
  };

  // The number of elements that fit on the stack between two rows.
  static constexpr int64_t kChunk = 512;
  static constexpr size_t kLargestCore = sizeof(double);

  double element_cost() const { return 0.5 * plan_.count; }

  void cast_chunk(const void* from, void* to, int64_t n) const {
    alignas(64) std::byte buffers[2][size_t(kChunk) * kLargestCore];
    const void* source = from;
    for (int i = 0; i < plan_.count; ++i) {
      void* target = i + 1 == plan_.count ? to : buffers[i % 2];
      plan_.rows[i](source, target, n);
      source = target;
    }
  }

  CastPlan plan_;
  size_t in_size_, out_size_;
  Tensor scalar_;  // of the output's type, to be copied and overwritten
  ScalarFunction shortcut_ = nullptr;
};

// The same bytes as another type, possibly with one dimension more or less.
class BitcastKernel final : public Kernel {
 public:
  explicit BitcastKernel(const KernelInfo& info)
      : from_(dtype_size(info.input_dtype(0))),
        to_(dtype_size(info.output_dtype(0))) {}

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const DataType dtype = context.node().output_dtypes()[0];
    if (from_ == to_) {
      context.set_output(0, x.with_dtype(dtype));
      return {};
    }
    Shape shape = x.shape();
    if (from_ > to_) {
      shape.add_dim(int64_t(from_ / to_));
    } else {
      const int64_t parts = int64_t(to_ / from_);
      const int last = shape.rank() - 1;
      if (last < 0 || shape.dim(last) != parts)
        return context.fail(
            "{} cannot be read as {}: its last dimension "
            "must be {}",
            x.describe(), dtype_name(dtype), parts);
      shape.remove_dim(last);
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (out->bytes() > 0) std::memcpy(out->mutable_raw(), x.raw(), x.bytes());
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 0.1 * double(context.input(0).bytes());
  }
  bool may_be_expensive() const override { return from_ != to_; }

 private:
  size_t from_, to_;
};

// Whether a scalar is not zero (or not the empty string), or whether a tensor
// with dimensions has elements.
template <class T>
class ToBoolKernel final : public CheapKernel {
 public:
  explicit ToBoolKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const bool value =
        x.is_scalar() ? *x.data<T>() != T() : x.num_elements() > 0;
    context.set_output(0, Tensor::scalar(value));
    return {};
  }
};

template <class... Ts>
void add_to_bool(KernelRegistry& registry, Types<Ts...>) {
  (add_kernel(registry, "ToBool", kDataTypeOf<Ts>,
              make_kernel<ToBoolKernel<Ts>>),
   ...);
}

}  // namespace

void register_cast_kernels(KernelRegistry& registry) {
  registry.add<CastKernel>("Cast");
  registry.add<BitcastKernel>("Bitcast");
  add_to_bool(registry, FloatingTypes());
  add_to_bool(registry, SignedIntegers());
  add_to_bool(registry, UnsignedIntegers());
  add_to_bool(registry, ComplexTypes());
  add_to_bool(registry, Types<bool, std::string>());
}

}  // namespace tagflow::devices
