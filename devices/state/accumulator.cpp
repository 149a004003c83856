#include "devices/state/accumulator.h"

#include <utility>
#include <vector>

#include "devices/counted_growth.h"
#include "devices/tensor_rows.h"
#include "graph/counted.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// value / count, in a new buffer: somebody else may hold the value's.
Result<Tensor> divided(const KernelContext& context, Tensor value,
                       int64_t count) {
  Tensor quotient = value;
  if (value.buffer() != nullptr) {
    TAGFLOW_ASSIGN(quotient, Tensor::allocate(value.dtype(), value.shape(),
                                              context.allocator()));
  }
  visit_numeric(value.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = value.data<T>();
    T* to = quotient.mutable_data<T>();
    for (int64_t i = 0, n = value.num_elements(); i < n; ++i) {
      if constexpr (std::is_integral_v<T>) {
        to[i] = T(int64_t(from[i]) / count);
      } else if constexpr (std::is_floating_point_v<T>) {
        to[i] = from[i] / T(count);
      } else if constexpr (requires { typename T::value_type; }) {
        to[i] = from[i] / typename T::value_type(count);
      } else {
        to[i] = T(from[i] / T(float(count)));
      }
    }
  });
  return quotient;
}

}  // namespace

std::string AccumulatorSpec::describe() const {
  return fmt::format("{} accumulator of {}{} by {}",
                     is_sparse ? "sparse" : "dense", dtype_name(dtype),
                     shape.to_string(), is_mean ? "MEAN" : "SUM");
}

std::string ConditionalAccumulator::describe() const {
  return fmt::format("{} \"{}\"", kKind, name_);
}

std::string ConditionalAccumulator::describe_state() const {
  const size_t takers = waiting(Line::kOut);
  return fmt::format(
      "{} has {}{}", describe(), counted(size_t(count()), "gradient"),
      takers == 0 ? std::string()
                  : fmt::format(", {} wait{}", counted(takers, "take"),
                                takers == 1 ? "s" : ""));
}

Status ConditionalAccumulator::check_use(const KernelContext& context,
                                         DataType dtype, bool is_sparse) const {
  if (dtype == spec_.dtype && is_sparse == spec_.is_sparse) return {};
  return context.fail("{} is a {}, but is used as a {} one of {}", describe(),
                      spec_.describe(), is_sparse ? "sparse" : "dense",
                      dtype_name(dtype));
}

Status ConditionalAccumulator::add(const KernelContext& context,
                                   const Tensor& gradient) {
  const Shape shape = gradient.shape();
  if (!spec_.shape.accepts(shape) ||
      (sum_.valid() && count() > 0 && sum_.shape() != shape))
    return context.fail("a gradient of shape {} does not fit {} of {}",
                        shape.to_string(), describe(),
                        sum_.valid() && count() > 0 ? sum_.shape().to_string()
                                                    : spec_.shape.to_string());
  if (count() == 0) {
    sum_ = gradient;
  } else {
    TAGFLOW_ASSIGN(sum_, add_tensors(context, sum_, gradient, false));
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status ConditionalAccumulator::add_rows(const KernelContext& context,
                                        const Tensor& indices,
                                        const Tensor& values) {
  Shape row_shape = values.shape();
  row_shape.remove_dim(0);
  if (!rows_.empty() && row_shape.rank() != row_shape_.rank())
    return context.fail("values of rank {} do not fit {}, whose rank is {}",
                        values.rank(), describe(), row_shape_.rank() + 1);
  for (int d = 0; !rows_.empty() && d < row_shape.rank(); ++d)
    if (row_shape.dim(d) != row_shape_.dim(d))
      return context.fail("dimension {} of values is {}, and {} is wanted",
                          d + 1, row_shape.dim(d), row_shape_.dim(d));
  std::vector<Tensor> rows;
  TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, values, rows));
  // Kept aside, so that an error changes nothing.
  std::map<int64_t, Row> changed;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t index = indices.data<int64_t>()[i];
    auto [it, is_new] = changed.try_emplace(index);
    Row& row = it->second;
    if (is_new) {
      if (const auto known = rows_.find(index); known != rows_.end())
        row = known->second;
      ++row.count;
    }
    if (row.sum.valid()) {
      TAGFLOW_ASSIGN(row.sum, add_tensors(context, row.sum, rows[i], false));
    } else {
      row.sum = std::move(rows[i]);
    }
  }
  size_t more = 0;
  for (const auto& [index, row] : changed)
    if (!rows_.contains(index)) ++more;
  TAGFLOW_RETURN_IF_ERROR(context.count(
      charge_, (rows_.size() + more) * (kNodeBytes + sizeof(Row)), [this] {
        return fmt::format("{} with {} rows", describe(), rows_.size());
      }));
  for (auto& [index, row] : changed)
    if (const auto known = rows_.find(index); known != rows_.end())
      known->second = std::move(row);
  rows_.merge(changed);
  row_shape_ = row_shape;
  count_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status ConditionalAccumulator::take(KernelContext& context) {
  if (spec_.is_sparse) {
    TAGFLOW_RETURN_IF_ERROR(take_rows(context));
  } else {
    Tensor result = sum_;
    if (spec_.is_mean) {
      TAGFLOW_ASSIGN(result, divided(context, sum_, count()));
    }
    context.set_output(0, std::move(result));
  }
  clear();
  ++step_;
  return {};
}

// Each row is divided by the number of gradients that had it.
Status ConditionalAccumulator::take_rows(KernelContext& context) {
  std::vector<Tensor> sums;
  TAGFLOW_ASSIGN(Tensor * indices,
                 context.allocate_output(0, {int64_t(rows_.size())}));
  for (const auto& [index, row] : rows_) {
    indices->mutable_data<int64_t>()[sums.size()] = index;
    Tensor sum = row.sum;
    if (spec_.is_mean && row.count > 1) {
      TAGFLOW_ASSIGN(sum, divided(context, row.sum, row.count));
    }
    sums.push_back(std::move(sum));
  }
  TAGFLOW_ASSIGN(context.output(1),
                 stack_rows(context, spec_.dtype, sums, row_shape_));
  TAGFLOW_ASSIGN(Tensor * shape,
                 context.allocate_output(2, {row_shape_.rank() + 1}));
  int64_t* dims = shape->mutable_data<int64_t>();
  const bool is_known = spec_.shape.has_rank() && spec_.shape.rank() > 0;
  *dims++ = is_known ? spec_.shape.dim(0) : -1;
  for (const int64_t dim : row_shape_.dims()) *dims++ = dim;
  return {};
}

// Numbers: step and gradients; then, of a sparse one, the shape of rows, and
// index and gradients of each row.
Result<std::vector<Tensor>> ConditionalAccumulator::save() const {
  std::vector<Tensor> saved = {numbers_tensor({{step_, count()}})};
  if (!spec_.is_sparse) {
    if (count() > 0) saved.push_back(sum_);
    return saved;
  }
  saved.push_back(numbers_tensor(row_shape_.dims()));
  std::vector<int64_t> rows;
  for (const auto& [index, row] : rows_)
    rows.insert(rows.end(), {index, row.count});
  saved.push_back(numbers_tensor(rows));
  for (const auto& [index, row] : rows_) saved.push_back(row.sum);
  return saved;
}

Status ConditionalAccumulator::restore(const KernelContext& context,
                                       std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(2));
  const auto check = [&](const Tensor& sum, bool fits) -> Status {
    if (sum.dtype() == spec_.dtype && fits) return {};
    return context.fail(
        "what was saved of {} has sums of {}, not those of a {}", describe(),
        sum.describe(), spec_.describe());
  };
  if (spec_.is_sparse) {
    TAGFLOW_ASSIGN(const std::vector<int64_t> dims, reader.numbers());
    TAGFLOW_ASSIGN(row_shape_, Shape::make(dims));
    TAGFLOW_ASSIGN(const std::vector<int64_t> rows, reader.numbers());
    TAGFLOW_ASSIGN(const auto sums, reader.tensors(rows.size() / 2));
    TAGFLOW_RETURN_IF_ERROR(
        context.count(charge_, sums.size() * (kNodeBytes + sizeof(Row)),
                      [this] { return describe(); }));
    for (size_t i = 0; i < sums.size(); ++i) {
      TAGFLOW_RETURN_IF_ERROR(check(sums[i], sums[i].shape() == row_shape_));
      rows_.insert_or_assign(rows[2 * i], Row{sums[i], rows[2 * i + 1]});
    }
  } else if (numbers[1] > 0) {
    TAGFLOW_ASSIGN(const auto sum, reader.tensors(1));
    TAGFLOW_RETURN_IF_ERROR(check(sum[0], spec_.shape.accepts(sum[0].shape())));
    sum_ = sum[0];
  }
  step_ = numbers[0];
  count_.store(numbers[1], std::memory_order_relaxed);
  return reader.end();
}

void ConditionalAccumulator::clear() noexcept {
  sum_.reset();
  rows_.clear();
  charge_.clear();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace tagflow::devices
