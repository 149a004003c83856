// RaggedTensorToTensor, RaggedTensorToSparse: convert rows of different lengths
// to a dense or a sparse tensor.
#include <algorithm>
#include <numeric>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

// The ends of rows: splits[i] to splits[i + 1] are the parts of row i.
using Splits = std::vector<int64_t>;

// The splits in an input. InvalidArgument if they do not begin with 0, or
// descend.
Result<Splits> splits_input(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (tensor.rank() != 1 || tensor.dim(0) < 1)
    return context.fail(
        "row splits must be a vector of at least one element, got {}",
        tensor.describe());
  Splits splits(size_t(tensor.dim(0)));
  for (size_t i = 0; i < splits.size(); ++i) {
    context.check_cancelled();
    splits[i] = index_at(tensor, int64_t(i));
    if (splits[i] < (i == 0 ? 0 : splits[i - 1]) || (i == 0 && splits[i] > 0))
      return context.fail("row splits must begin with 0 and ascend, got {}",
                          tensor.to_string());
  }
  return splits;
}

// A ragged dimension, in no more memory than its input: the rows that have
// parts, and from splits the other rows, too.
struct Level {
  int64_t num_rows = 0;
  std::vector<int64_t> rows;  // their numbers, which ascend
  Splits splits = {0};        // of these only
};

Result<Level> level_of_splits(const KernelContext& context, int input) {
  Level level;
  TAGFLOW_ASSIGN(level.splits, splits_input(context, input));
  level.num_rows = int64_t(level.splits.size()) - 1;
  level.rows.resize(size_t(level.num_rows));
  std::iota(level.rows.begin(), level.rows.end(), int64_t{0});
  return level;
}

// From the row of each part. InvalidArgument if the numbers of rows descend, or
// are outside of [0, rows).
Result<Level> level_of_ids(const KernelContext& context, int input,
                           int64_t rows) {
  const Tensor& ids = context.input(input);
  if (ids.rank() != 1)
    return context.fail("value rowids must be a vector, got {}",
                        ids.describe());
  if (rows < 0) return context.fail("{} is not a number of rows", rows);
  Level level;
  level.num_rows = rows;
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    context.check_cancelled();
    const int64_t row = index_at(ids, i);
    const int64_t last = level.rows.empty() ? 0 : level.rows.back();
    if (row < last || row >= rows)
      return context.fail(
          "value rowids must ascend within [0, {}), got {} at {}", rows, row,
          i);
    if (level.rows.empty() || row > last) {
      level.rows.push_back(row);
      level.splits.push_back(i);
    }
    level.splits.back() = i + 1;
  }
  return level;
}

// Checks the partitions of all ragged dimensions against one another and the
// values.
Status check_levels(const KernelContext& context,
                    const std::vector<Level>& levels, const Tensor& values) {
  if (values.rank() < 1)
    return context.fail("values must be at least a vector, got {}",
                        values.describe());
  for (size_t k = 0; k < levels.size(); ++k) {
    const int64_t parts =
        k + 1 < levels.size() ? levels[k + 1].num_rows : values.dim(0);
    const int64_t end = levels[k].splits.back();
    if (end != parts)
      return context.fail("ragged dimension {} ends at {}, but there are {}",
                          k + 1, end, parts);
  }
  return {};
}

int64_t longest_row(const Level& level) {
  const Splits& splits = level.splits;
  int64_t longest = 0;
  for (size_t i = 1; i < splits.size(); ++i)
    longest = std::max(longest, splits[i] - splits[i - 1]);
  return longest;
}

class RaggedToDenseKernel final : public SparseKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    std::unique_ptr<RaggedToDenseKernel> kernel(new RaggedToDenseKernel);
    const auto types =
        attr_of<std::vector<std::string>>(info, "row_partition_types");
    if (types.size() != size_t(info.num_inputs() - kPartitions))
      return refused(
          fmt::format("there are {} row_partition_types for {} partitions",
                      types.size(), info.num_inputs() - kPartitions));
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "FIRST_DIM_SIZE" && i == 0 && types.size() > 1) {
        kernel->has_first_dim_ = true;
      } else if (types[i] == "ROW_SPLITS" || types[i] == "VALUE_ROWIDS") {
        kernel->is_ids_.push_back(types[i] == "VALUE_ROWIDS");
      } else {
        return refused(
            fmt::format("row partition {} is of type \"{}\", not ROW_SPLITS or "
                        "VALUE_ROWIDS after FIRST_DIM_SIZE",
                        i, types[i]));
      }
    }
    if (kernel->is_ids_[0] != kernel->has_first_dim_)
      return refused(
          "partitions begin with ROW_SPLITS, or with FIRST_DIM_SIZE and "
          "VALUE_ROWIDS");
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(1);
    TAGFLOW_ASSIGN(const std::vector<Level> levels, read_levels(context));
    TAGFLOW_RETURN_IF_ERROR(check_levels(context, levels, values));
    TAGFLOW_ASSIGN(const Shape shape, output_shape(context, levels, values));
    const int64_t size =
        values.dim(0) == 0
            ? product(shape.dims(), int(levels.size()) + 1, shape.rank())
            : values.num_elements() / values.dim(0);
    TAGFLOW_ASSIGN(const Tensor filling, default_row(context, values));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    if (filling.num_elements() == 1) {
      fill_elements(context, filling, *output);
    } else {
      for (int64_t at = 0; at < output->num_elements(); at += size) {
        context.check_cancelled();
        copy_elements(filling, 0, *output, at, size);
      }
    }
    const std::vector<int64_t> places = places_of(levels, shape, values.dim(0));
    for (size_t i = 0; i < places.size(); ++i) {
      context.check_cancelled();
      if (places[i] >= 0)
        copy_elements(values, int64_t(i) * size, *output, places[i] * size,
                      size);
    }
    return {};
  }

 private:
  static constexpr int kPartitions = 3;  // the first input with a partition

  static Status refused(std::string_view why) {
    return invalid_argument("[RaggedTensorToTensor] {}", why);
  }

  Result<std::vector<Level>> read_levels(const KernelContext& context) const {
    std::vector<Level> levels;
    int input = kPartitions;
    int64_t rows = 0;
    if (has_first_dim_) {
      TAGFLOW_ASSIGN(rows, index_scalar(context, input++, "the first size"));
    }
    for (const bool is_ids : is_ids_) {
      TAGFLOW_ASSIGN(levels.emplace_back(),
                     is_ids ? level_of_ids(context, input, rows)
                            : level_of_splits(context, input));
      ++input;
      rows = levels.back().splits.back();
    }
    return levels;
  }

  // The shape in input 0; an open dimension gets the size of the longest row,
  // or of the values.
  static Result<Shape> output_shape(const KernelContext& context,
                                    const std::vector<Level>& levels,
                                    const Tensor& values) {
    const Tensor& given = context.input(0);
    std::vector<int64_t> dims = {levels[0].num_rows};
    for (const Level& level : levels) dims.push_back(longest_row(level));
    for (int i = 1; i < values.rank(); ++i) dims.push_back(values.dim(i));
    if (given.is_scalar()) {
      if (index_at(given, 0) != -1)
        return context.fail("shape must be a vector, or the scalar -1, not {}",
                            given.to_string());
      return Shape::make(dims);
    }
    if (given.rank() != 1 || given.dim(0) != int64_t(dims.size()))
      return context.fail("shape must be a vector of {} elements, got {}",
                          dims.size(), given.describe());
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t dim = index_at(given, int64_t(i));
      if (dim < -1) return context.fail("shape has a dimension of {}", dim);
      if (dim >= 0 && i > levels.size() && dim != dims[i])
        return context.fail("dimension {} of shape {} is not that of values {}",
                            i, given.to_string(), values.describe());
      if (dim >= 0) dims[i] = dim;
    }
    return Shape::make(dims);
  }

  // The value of missing elements: of the values' inner shape, or a scalar.
  static Result<Tensor> default_row(const KernelContext& context,
                                    const Tensor& values) {
    const Tensor& given = context.input(2);
    if (given.num_elements() == 1 && given.rank() <= values.rank() - 1)
      return given;
    Shape inner = values.shape();
    inner.remove_dim(0);
    const int missing = inner.rank() - given.rank();
    bool fits = missing >= 0;
    for (int i = 0; fits && i < given.rank(); ++i)
      fits = given.dim(i) == 1 || given.dim(i) == inner.dim(missing + i);
    if (!fits)
      return context.fail(
          "default_value {} does not fit the inner dimensions {} of the values",
          given.describe(), inner.to_string());
    TAGFLOW_ASSIGN(Tensor row,
                   Tensor::allocate(given.dtype(), inner, context.allocator()));
    if (row.num_elements() == 0) return row;
    StridedCopy copy;
    const auto strides = row_major_strides(given.shape().dims());
    const auto packed = row_major_strides(inner.dims());
    for (int i = 0; i < inner.rank(); ++i) {
      const bool moves = i >= missing && given.dim(i - missing) > 1;
      copy.add(inner.dim(i), moves ? strides[size_t(i - missing)] : 0,
               packed[size_t(i)]);
    }
    strided_copy(context, std::move(copy), given, row);
    return row;
  }

  // The position of each of so many values, in rows of the inner shape; -1 if
  // the output has no place for it.
  static std::vector<int64_t> places_of(const std::vector<Level>& levels,
                                        const Shape& shape, int64_t values) {
    std::vector<int64_t> places = levels[0].rows;
    for (int64_t& place : places)
      if (place >= shape.dim(0)) place = -1;
    for (size_t k = 0; k < levels.size(); ++k) {
      const Splits& splits = levels[k].splits;
      const bool is_last = k + 1 == levels.size();
      const int64_t width = shape.dim(int(k) + 1);
      std::vector<int64_t> inner(
          is_last ? size_t(values) : levels[k + 1].rows.size(), -1);
      size_t row = 0;
      for (size_t i = 0; i < inner.size(); ++i) {
        const int64_t part = is_last ? int64_t(i) : levels[k + 1].rows[i];
        while (splits[row + 1] <= part) ++row;
        const int64_t at = part - splits[row];
        if (places[row] >= 0 && at < width) inner[i] = places[row] * width + at;
      }
      places = std::move(inner);
    }
    return places;
  }

  bool has_first_dim_ = false;
  std::vector<bool> is_ids_;  // for each ragged dimension: ids, not splits
};

class RaggedToSparseKernel final : public SparseKernel {
 public:
  explicit RaggedToSparseKernel(const KernelInfo& info)
      : levels_(info.num_inputs() - 1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(levels_);
    std::vector<Level> levels;
    for (int i = 0; i < levels_; ++i) {
      TAGFLOW_ASSIGN(levels.emplace_back(), level_of_splits(context, i));
    }
    TAGFLOW_RETURN_IF_ERROR(check_levels(context, levels, values));
    Shape whole{levels[0].num_rows};
    for (const Level& level : levels) whole.add_dim(longest_row(level));
    for (int i = 1; i < values.rank(); ++i) whole.add_dim(values.dim(i));
    const int64_t count = values.num_elements();
    TAGFLOW_ASSIGN(const Shape rows, Shape::make({{count, whole.rank()}}));
    TAGFLOW_ASSIGN(Tensor * indices, context.allocate_output(0, rows));
    TAGFLOW_ASSIGN(context.output(1), values.reshaped({count}));
    TAGFLOW_RETURN_IF_ERROR(set_shape_output(context, 2, whole));
    if (count == 0) return {};
    // The row of the value in each ragged dimension.
    std::vector<size_t> row(levels.size(), 0);
    const int64_t size = count / values.dim(0);
    auto* to = indices->mutable_data<int64_t>();
    for (int64_t value = 0; value < values.dim(0); ++value) {
      int64_t part = value;
      for (size_t k = levels.size(); k-- > 0; part = int64_t(row[k]))
        while (levels[k].splits[row[k] + 1] <= part) ++row[k];
      for (int64_t i = 0; i < size; ++i, to += whole.rank()) {
        context.check_cancelled();
        to[0] = int64_t(row[0]);
        for (size_t k = 0; k < levels.size(); ++k)
          to[k + 1] = (k + 1 < levels.size() ? int64_t(row[k + 1]) : value) -
                      levels[k].splits[row[k]];
        int64_t rest = i;
        for (int d = whole.rank(); d-- > levels_ + 1; rest /= whole.dim(d))
          to[d] = rest % whole.dim(d);
      }
    }
    return {};
  }

 private:
  const int levels_;
};

}  // namespace

void register_ragged_dense_kernels(KernelRegistry& registry) {
  registry.add<RaggedToDenseKernel>("RaggedTensorToTensor");
  registry.add<RaggedToSparseKernel>("RaggedTensorToSparse");
}

}  // namespace tagflow::devices
