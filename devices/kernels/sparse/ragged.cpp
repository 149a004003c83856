// RaggedRange, RaggedGather: rows of different lengths, stored as their values
// and, for each level, the splits between rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/segment/ids.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

// Stores row splits as int32 or int64, depending on the output.
Status set_splits(KernelContext& context, int output,
                  const std::vector<int64_t>& splits) {
  TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(
                                   output, Shape{int64_t(splits.size())}));
  if (out->dtype() == DataType::kInt64) {
    std::ranges::copy(splits, out->mutable_data<int64_t>());
    return {};
  }
  if (splits.back() > std::numeric_limits<int32_t>::max())
    return context.fail("row split {} is too large for int32", splits.back());
  std::ranges::copy(splits, out->mutable_data<int32_t>());
  return {};
}

template <class T>
T next_value(T value, T delta) {
  if constexpr (std::is_integral_v<T>) {  // it may overflow past the last one
    using Unsigned = std::make_unsigned_t<T>;
    return T(Unsigned(value) + Unsigned(delta));
  } else {
    return T(value + delta);
  }
}

// A row for each start, limit and delta; scalars serve every row.
template <class T>
class RaggedRangeKernel : public Kernel {
 public:
  explicit RaggedRangeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t rows, rows_of(context));
    std::vector<int64_t> splits = {0};
    for (int64_t row = 0; row < rows; ++row) {
      context.check_cancelled();
      const Row range = row_at(context, row);
      if (range.delta == T(0)) return context.fail("delta {} is 0", row);
      const double length = length_of(range);
      // Also rejects NaN.
      if (!(length + double(splits.back()) < kMostValues))
        return context.fail("range {} is too long", row);
      splits.push_back(splits.back() + int64_t(length));
    }
    TAGFLOW_RETURN_IF_ERROR(set_splits(context, 0, splits));
    TAGFLOW_ASSIGN(Tensor * values,
                   context.allocate_output(1, Shape{splits.back()}));
    T* to = values->mutable_data<T>();
    for (int64_t row = 0; row < rows; ++row) {
      context.check_cancelled();
      const Row range = row_at(context, row);
      T* end = values->mutable_data<T>() + splits[size_t(row) + 1];
      for (T value = range.start; to != end;
           value = next_value(value, range.delta)) {
        context.check_cancelled();
        *to++ = value;
      }
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    const Result<int64_t> rows = rows_of(context);
    if (!rows.ok()) return 0;
    double elements = 0;
    for (int64_t row = 0; row < *rows; ++row)
      elements += length_of(row_at(context, row));
    return elements < kMostValues ? 200 + 2 * elements : 0;
  }

 private:
  struct Row {
    T start, limit, delta;
  };
  static constexpr double kMostValues = 9e18;

  static Result<int64_t> rows_of(const KernelContext& context) {
    int64_t rows = -1;
    for (const Tensor& input : context.inputs()) {
      if (input.rank() > 1)
        return context.fail(
            "starts, limits and deltas must be scalars or vectors, got {}",
            input.describe());
      if (input.rank() == 0) continue;
      if (rows >= 0 && rows != input.dim(0))
        return context.fail(
            "starts, limits and deltas must be of the same length, not {} and "
            "{}",
            rows, input.dim(0));
      rows = input.dim(0);
    }
    return rows < 0 ? 1 : rows;
  }
  static Row row_at(const KernelContext& context, int64_t row) {
    const auto at = [&](int i) {
      const Tensor& input = context.input(i);
      return input.data<T>()[input.is_scalar() ? 0 : row];
    };
    return {at(0), at(1), at(2)};
  }
  static double length_of(const Row& row) {
    const bool rises = row.delta > T(0);
    if (rises ? row.limit <= row.start : row.limit >= row.start) return 0;
    if constexpr (std::is_integral_v<T>) {
      const auto span = __int128(row.limit) - row.start;
      const auto step = __int128(row.delta);
      if (step == 0) return 0;
      return double((span + step - (rises ? 1 : -1)) / step);
    } else {
      const T steps = T(T(row.limit - row.start) / row.delta);
      return std::ceil(std::abs(double(steps)));
    }
  }
};

// Rows of a ragged tensor, selected by number: a level of splits for each
// dimension of the numbers but the first, then those of the rows.
class RaggedGatherKernel : public SparseKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const int64_t levels,
                   info.attr<int64_t>("PARAMS_RAGGED_RANK"));
    return std::unique_ptr<Kernel>(new RaggedGatherKernel(int(levels)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(levels_);
    const Tensor& numbers = context.input(levels_ + 1);
    const int outputs = context.num_outputs() - 1;
    if (values.rank() < 1)
      return context.fail("params_dense_values is a scalar");
    if (outputs != levels_ + numbers.rank() - 1)
      return context.fail(
          "indices {} of {} levels make {} levels, not OUTPUT_RAGGED_RANK {}",
          numbers.describe(), levels_, levels_ + numbers.rank() - 1, outputs);
    std::vector<Tensor> splits;
    splits.resize(size_t(levels_));
    for (int level = 0; level < levels_; ++level)
      TAGFLOW_RETURN_IF_ERROR(check_splits(context, level, splits));
    int output = 0;
    int64_t rows = numbers.rank() > 0 ? numbers.dim(0) : 0;
    for (int d = 1; d < numbers.rank(); ++d) {
      std::vector<int64_t> uniform(size_t(rows) + 1, 0);
      for (int64_t row = 1; row <= rows; ++row)
        uniform[size_t(row)] = row * numbers.dim(d);
      TAGFLOW_RETURN_IF_ERROR(set_splits(context, output++, uniform));
      rows *= numbers.dim(d);
    }
    // The runs of rows of a level, and the selected ones of the level below.
    std::vector<Run> runs;
    const int64_t count = splits[0].dim(0) - 1;
    for (int64_t i = 0; i < numbers.num_elements(); ++i) {
      context.check_cancelled();
      const int64_t row = graph::index_at(numbers, i);
      if (row < 0 || row >= count)
        return context.fail("indices[{}] = {} is outside of [0, {})", i, row,
                            count);
      runs.push_back({row, row + 1});
    }
    for (int level = 0; level < levels_; ++level) {
      const auto* split = splits[size_t(level)].data<int64_t>();
      std::vector<int64_t> lengths = {0};
      for (const Run& run : runs)
        for (int64_t row = run.begin; row < run.end; ++row) {
          context.check_cancelled();
          int64_t end = 0;
          if (__builtin_add_overflow(lengths.back(),
                                     split[row + 1] - split[row], &end))
            return context.fail("the rows of level {} overflow", level);
          lengths.push_back(end);
        }
      for (Run& run : runs) run = {split[run.begin], split[run.end]};
      if (output == 0 && numbers.rank() == 0 && level == 0) continue;
      TAGFLOW_RETURN_IF_ERROR(set_splits(context, output++, lengths));
    }
    return gather(context, values, runs, output);
  }

 private:
  struct Run {
    int64_t begin, end;
  };

  explicit RaggedGatherKernel(int levels) : levels_(levels) {}

  // Checks that the splits of `level` are sorted, and within the level below.
  Status check_splits(const KernelContext& context, int level,
                      std::vector<Tensor>& splits) const {
    if (context.input(level).rank() != 1 || context.input(level).dim(0) == 0)
      return context.fail("row splits {} are {}, not a vector of one or more",
                          level, context.input(level).describe());
    TAGFLOW_ASSIGN(splits[size_t(level)],
                   as_int64(context, context.input(level)));
    const auto split = splits[size_t(level)].flat<int64_t>();
    if (split.front() < 0)
      return context.fail("row splits {} begin with {}", level, split.front());
    if (!std::ranges::is_sorted(split))
      return context.fail("row splits {} are not sorted", level);
    const Tensor& below = context.input(level + 1);
    const int64_t rows = below.rank() == 0     ? 0
                         : level + 1 < levels_ ? below.dim(0) - 1
                                               : below.dim(0);
    if (split.back() > rows)
      return context.fail("row splits {} point to {}, past the {} rows below",
                          level, split.back(), rows);
    return {};
  }

  static Status gather(KernelContext& context, const Tensor& values,
                       const std::vector<Run>& runs, int output) {
    int64_t rows = 0;
    for (const Run& run : runs)
      if (__builtin_add_overflow(rows, run.end - run.begin, &rows))
        return context.fail("the picked values are too many");
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(rows, values, 1));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(output, shape));
    if (out->num_elements() == 0) return {};
    const int64_t size = row_size(values, 1);
    int64_t to = 0;
    for (const Run& run : runs) {
      context.check_cancelled();
      const int64_t count = (run.end - run.begin) * size;
      copy_elements(values, run.begin * size, *out, to, count);
      to += count;
    }
    return {};
  }

  int levels_;
};

}  // namespace

void register_ragged_kernels(KernelRegistry& registry) {
  for_each<float, double, BFloat16, int32_t, int64_t>([&]<class T>(TypeTag<T>) {
    registry.add<RaggedRangeKernel<T>>("RaggedRange",
                                       {{"T", {kDataTypeOf<T>}}});
  });
  registry.add<RaggedGatherKernel>("RaggedGather");
}

}  // namespace tagflow::devices
