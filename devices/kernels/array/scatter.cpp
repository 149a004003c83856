#include "devices/kernels/array/scatter.h"

#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// Slices of at least so many bytes are divided among workers by columns,
// smaller ones by their numbers, and narrow ones not at all.
constexpr int64_t kWideSlice = 1 << 14;
constexpr int64_t kNarrowSlice = 64;
constexpr double kScatterNanoseconds = 0.2;
// A worker that passes over all numbers looks for a cancellation between parts
// of so many.
constexpr int64_t kNumbersInPart = 4096;

// Slices of a tensor, and their updates.
struct ScatteredSlices {
  std::span<const int64_t> numbers;
  int64_t size = 0;      // elements of one
  bool has_one = false;  // a single element updates all
};

// What one worker changes: columns [begin, end) of slices [first, last).
struct ScatterRange {
  int64_t first, last, begin, end;
};

using ScatterLoop = void (*)(const ScatteredSlices& slices,
                             const ScatterRange& range, const void* updates,
                             Tensor& target);

// Elements are Ts; F, which has no state, combines two.
template <class T, class F>
void scatter_range(const ScatteredSlices& slices, const ScatterRange& range,
                   const void* updates, Tensor& target) {
  const F combine{};
  const ElementWriter<T> writer(target);
  T* const to = static_cast<T*>(target.mutable_raw());
  const auto rows = slices.numbers;
  const T* from = static_cast<const T*>(updates);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < range.first || rows[i] >= range.last) continue;
    T* row = to + rows[i] * slices.size;
    if (slices.has_one) {
      for (int64_t j = range.begin; j < range.end; ++j)
        writer.assign(row[j], combine(row[j], *from));
    } else {
      const T* source = from + int64_t(i) * slices.size;
      for (int64_t j = range.begin; j < range.end; ++j)
        writer.assign(row[j], combine(row[j], source[j]));
    }
  }
}

void scatter(const KernelContext& context, const ScatteredSlices& slices,
             const Tensor& updates, Tensor& target, size_t element_size,
             ScatterLoop loop) {
  const int64_t size = slices.size;
  if (slices.numbers.empty() || size == 0) return;
  const int64_t count = target.num_elements() / size;
  const int64_t bytes = size * int64_t(element_size);
  const auto all = int64_t(slices.numbers.size());
  const auto numbers = double(all);
  const double cost = numbers * kScatterNanoseconds * double(bytes);
  // Numbers [begin, end).
  const auto run_part = [&](int64_t begin, int64_t end,
                            const ScatterRange& range) {
    ScatteredSlices part = slices;
    part.numbers = slices.numbers.subspan(size_t(begin), size_t(end - begin));
    const auto skipped = size_t(begin) * size_t(bytes);
    loop(part, range,
         static_cast<const char*>(updates.raw()) +
             (slices.has_one ? 0 : skipped),
         target);
  };
  const auto run_all = [&](const ScatterRange& range) {
    for (int64_t begin = 0; begin < all; begin += kNumbersInPart) {
      context.check_cancelled();
      run_part(begin, std::min(begin + kNumbersInPart, all), range);
    }
  };
  if (bytes >= kWideSlice) {
    context.parallel_for(
        size, cost / double(size),
        [&](int64_t begin, int64_t end) {
          run_all({0, count, begin, end});
        },
        numbers);
  } else if (bytes >= kNarrowSlice) {
    context.parallel_for(
        count, cost / double(count),
        [&](int64_t first, int64_t last) {
          run_all({first, last, 0, size});
        },
        numbers);
  } else {
    // Parts of the numbers one after the other: a slice gets its updates in
    // their order.
    context.for_blocks(all, cost / numbers, [&](int64_t begin, int64_t end) {
      run_part(begin, end, {0, count, 0, size});
    });
  }
}

template <class T, class F>
void scatter_with(const KernelContext& context, const ScatteredSlices& slices,
                  const Tensor& updates, Tensor& target, F) {
  scatter(context, slices, updates, target, sizeof(T), scatter_range<T, F>);
}

template <class T>
T scatter_quotient(T a, T b) {
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    if (b == -1) return T(wrap(T(0)) - wrap(a));
  }
  return T(a / b);
}

// Combines by arithmetic if the type supports it; false if not.
bool scatter_numbers(const KernelContext& context,
                     const ScatteredSlices& slices, const Tensor& updates,
                     Combine combine, Tensor& target) {
  auto run = [&]<class T>(TypeTag<T>) {
    auto with = [&](auto f) {
      scatter_with<T>(context, slices, updates, target, f);
    };
    if (combine == Combine::kAdd) {
      with([](T a, T b) { return T(wrap(a) + wrap(b)); });
    } else if (combine == Combine::kSubtract) {
      with([](T a, T b) { return T(wrap(a) - wrap(b)); });
    } else if (combine == Combine::kMultiply) {
      with([](T a, T b) { return multiply(a, b); });
    } else if (combine == Combine::kDivide) {
      with([](T a, T b) { return scatter_quotient(a, b); });
    } else if constexpr (requires(T a, T b) { a < b; }) {
      if (combine == Combine::kMin) {
        with([](T a, T b) { return b < a ? b : a; });
      } else {
        with([](T a, T b) { return a < b ? b : a; });
      }
    }
  };
  const DataType dtype = target.dtype();
  const bool orders = combine == Combine::kMin || combine == Combine::kMax;
  if (is_integer(dtype)) {
    // Unsigned sums and products have the same bits as signed ones.
    if (!orders && combine != Combine::kDivide)
      return visit_size(dtype, [&]<class T>(TypeTag<T> tag) {
        if constexpr (std::is_integral_v<T>) run(tag);
      });
    return visit_integer(dtype, run);
  }
  if (is_complex(dtype)) return !orders && visit_complex(dtype, run);
  return visit_floating(dtype, run);
}

// A sum of strings joins them; a sum of bools is true if one is.
bool scatter_others(const KernelContext& context, const ScatteredSlices& slices,
                    const Tensor& updates, Combine combine, Tensor& target) {
  if (combine != Combine::kAdd) return false;
  if (target.dtype() == DataType::kString) {
    scatter_with<std::string>(
        context, slices, updates, target,
        [](const std::string& a, const std::string& b) { return a + b; });
    return true;
  }
  if (target.dtype() != DataType::kBool) return false;
  scatter_with<bool>(context, slices, updates, target,
                     [](bool a, bool b) { return a || b; });
  return true;
}

}  // namespace

Result<BadIndices> bad_indices_policy(const KernelInfo& info) {
  const auto policy = attr_of<std::string>(info, "bad_indices_policy");
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR")
    return BadIndices::kError;
  if (policy == "IGNORE") return BadIndices::kIgnore;
  return invalid_argument(
      "[{}] bad_indices_policy must be DEFAULT, ERROR or IGNORE, is \"{}\"",
      info.node().op(), policy);
}

Result<Tensor> as_int64(KernelContext& context, const Tensor& indices) {
  if (indices.dtype() == DataType::kInt64) return indices;
  TAGFLOW_ASSIGN(Tensor wide,
                 context.allocate_temp(DataType::kInt64, indices.shape()));
  auto* values = wide.mutable_data<int64_t>();
  const int64_t count = wide.num_elements();
  if (indices.dtype() == DataType::kInt32) {
    context.for_blocks(count, 1, [&](int64_t begin, int64_t end) {
      std::copy_n(indices.data<int32_t>() + begin, end - begin, values + begin);
    });
  } else {
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      values[i] = index_at(indices, i);
    }
  }
  return wide;
}

Result<Tensor> slice_numbers(KernelContext& context, const Tensor& indices,
                             const Shape& shape, BadIndices policy) {
  if (indices.rank() < 1)
    return context.fail("indices must be at least a vector, got {}",
                        indices.describe());
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > shape.rank())
    return context.fail("indices {} are longer than the shape {}",
                        indices.describe(), shape.to_string());
  const Shape index_shape = indices.shape();
  const int64_t count = product(index_shape.dims(), 0, index_shape.rank() - 1);
  TAGFLOW_ASSIGN(const Tensor wide, as_int64(context, indices));
  TAGFLOW_ASSIGN(Tensor numbers,
                 context.allocate_temp(DataType::kInt64, {count}));
  const int64_t* index = wide.data<int64_t>();
  auto* number = numbers.mutable_data<int64_t>();
  for (int64_t i = 0; i < count; ++i, index += depth) {
    context.check_cancelled();
    // Unsigned: if the shape is empty it may overflow.
    uint64_t at = 0;
    for (int d = 0; d < depth; ++d) {
      if (index[d] < 0 || index[d] >= shape.dim(d)) {
        if (policy == BadIndices::kError)
          return context.fail(
              "indices[{}] = [{}] does not index into the shape {}", i,
              fmt::join(std::span(index, size_t(depth)), ","),
              shape.to_string());
        at = uint64_t(-1);
        break;
      }
      at = at * uint64_t(shape.dim(d)) + uint64_t(index[d]);
    }
    number[i] = int64_t(at);
  }
  return numbers;
}

Status check_updates(const KernelContext& context, const Tensor& indices,
                     const Tensor& updates, const Shape& shape) {
  if (indices.rank() < 1)
    return context.fail("indices must be at least a vector, got {}",
                        indices.describe());
  if (updates.rank() < 1)
    return context.fail("updates must be at least a vector, got {}",
                        updates.describe());
  const bool no_indices = indices.num_elements() == 0;
  const bool no_updates = updates.num_elements() == 0;
  const bool no_elements = shape.num_elements() == 0;
  if (no_indices != no_updates || (no_elements && !no_indices))
    return context.fail(
        "indices {}, updates {} and the shape {}: some are empty, others not",
        indices.describe(), updates.describe(), shape.to_string());
  const int prefix = indices.rank() - 1;
  const int64_t depth = indices.dim(prefix);
  if (prefix > 0 && depth == 0)
    return context.fail("indices {} have no dimension to index",
                        indices.describe());
  bool fits = depth <= shape.rank() &&
              updates.rank() == prefix + shape.rank() - int(depth);
  for (int d = 0; fits && d < prefix; ++d)
    fits = updates.dim(d) == indices.dim(d);
  for (int d = prefix; fits && d < updates.rank(); ++d)
    fits = updates.dim(d) == shape.dim(int(depth) + d - prefix);
  if (!fits)
    return context.fail("updates {} do not fit indices {} into the shape {}",
                        updates.describe(), indices.describe(),
                        shape.to_string());
  return {};
}

Combine combine_of(std::string_view op) {
  if (op.ends_with("Add")) return Combine::kAdd;
  if (op.ends_with("Sub")) return Combine::kSubtract;
  if (op.ends_with("Mul")) return Combine::kMultiply;
  if (op.ends_with("Div")) return Combine::kDivide;
  if (op.ends_with("Min")) return Combine::kMin;
  if (op.ends_with("Max")) return Combine::kMax;
  return Combine::kAssign;
}

Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      const Tensor& updates, Combine combine, Tensor& target) {
  const int64_t count = numbers.num_elements();
  const int64_t size = count == 0 ? 0 : updates.num_elements() / count;
  return scatter_slices(context, numbers, size, updates, combine, target);
}

Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      int64_t size, const Tensor& updates, Combine combine,
                      Tensor& target) {
  const ScatteredSlices slices{numbers.flat<int64_t>(), size,
                               updates.is_scalar()};
  if (combine == Combine::kAssign) {
    visit_movable(target.dtype(), [&]<class T>(TypeTag<T>) {
      scatter_with<T>(context, slices, updates, target,
                      [](const T&, const T& b) { return b; });
    });
    return {};
  }
  if (scatter_numbers(context, slices, updates, combine, target) ||
      scatter_others(context, slices, updates, combine, target))
    return {};
  return error(Code::kUnimplemented, "[{}] cannot combine elements of type {}",
               context.node().op(), dtype_name(target.dtype()));
}

}  // namespace tagflow::devices
