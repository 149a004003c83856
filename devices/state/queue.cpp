#include "devices/state/queue.h"

#include <algorithm>
#include <utility>

#include "devices/copy.h"
#include "devices/outside_memory.h"
#include "devices/state/guard.h"
#include "devices/tensor_rows.h"
#include "graph/counted.h"

namespace tagflow::devices {

// --- Checks -----------------------------------------------------------------

Queue::Queue(std::string name, QueueSpec spec, uint64_t session_seed)
    : name_(std::move(name)),
      spec_(std::move(spec)),
      elements_([&]() -> std::unique_ptr<QueueElements> {
        const size_t width = spec_.types.size();
        switch (spec_.order) {
          case QueueSpec::Order::kFifo:
          case QueueSpec::Order::kPadding:
            return std::make_unique<FifoElements>(width);
          case QueueSpec::Order::kPriority:
            return std::make_unique<PriorityElements>(width);
          case QueueSpec::Order::kShuffled:
            break;
        }
        if (spec_.seed != 0 || spec_.seed2 != 0)
          return std::make_unique<ShuffledElements>(width, uint64_t(spec_.seed),
                                                    uint64_t(spec_.seed2));
        return std::make_unique<ShuffledElements>(
            width, session_seed, std::hash<std::string>()(name_));
      }()),
      element_(spec_.types.size()) {}

std::string Queue::describe() const {
  return fmt::format("{} \"{}\"", kKind, name_);
}

std::string Queue::describe_state() const {
  std::string text = fmt::format(
      "{}{} has {}", describe(), is_closed() ? ", which is closed," : "",
      spec_.capacity == QueueSpec::kUnbounded
          ? counted(size_t(size()), "element")
          : fmt::format("{} of {}", size(),
                        counted(size_t(spec_.capacity), "element")));
  const auto add = [&](size_t count, std::string_view what) {
    if (count > 0)
      text += fmt::format(", {} wait{}", counted(count, what),
                          count == 1 ? "s" : "");
  };
  add(waiting(Line::kIn), "enqueue");
  add(waiting(Line::kOut), "dequeue");
  return text;
}

Status Queue::check_values(const KernelContext& context,
                           std::span<const Tensor> values, bool many) const {
  if (values.size() != spec_.types.size())
    return context.fail("elements of {} have {}, not {}", describe(),
                        counted(spec_.types.size(), "component"),
                        values.size());
  const auto expected = [&](size_t i) {
    return fmt::format("component {} of {} takes {}{}{}", i, describe(),
                       many ? "rows of " : "", dtype_name(spec_.types[i]),
                       spec_.shapes.empty() ? "" : spec_.shapes[i].to_string());
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& value = values[i];
    if (value.dtype() != spec_.types[i]) [[unlikely]]
      return context.fail("{}, not {}", expected(i), value.describe());
    if (many) {
      if (value.rank() == 0)
        return context.fail("{}, but {} is a scalar, which has no rows",
                            expected(i), value.describe());
      if (value.dim(0) != values[0].dim(0))
        return context.fail(
            "all components must have the same number of rows, not {} and {}",
            values[0].describe(), value.describe());
    }
    if (spec_.shapes.empty()) continue;
    const PartialShape& wanted = spec_.shapes[i];
    if (wanted.rank() == 0 && value.rank() == int(many)) continue;
    Shape shape = value.shape();
    if (many) shape.remove_dim(0);
    if (wanted.accepts(shape)) [[likely]]
      continue;
    if (!many) return context.fail("{}, not {}", expected(i), value.describe());
    return context.fail("{}, but those of {} are of shape {}", expected(i),
                        value.describe(), shape.to_string());
  }
  return {};
}

// --- Inside -----------------------------------------------------------------

// A waiting dequeue_many from a priority queue reserves nothing: a later
// element may come first.
int64_t Queue::reserved() const {
  const Operation* const next = first(Line::kOut);
  if (next == nullptr || spec_.order == QueueSpec::Order::kPriority) return 0;
  return std::min(next->errand().amount, available());
}

int64_t Queue::space() const {
  const int64_t limit = makes_room() ? QueueSpec::kUnbounded : spec_.capacity;
  return limit - (elements_->size() - reserved());
}

int64_t Queue::available() const {
  const int64_t kept = is_closed() ? 0 : spec_.min_after_dequeue;
  return std::max<int64_t>(elements_->size() - kept, 0);
}

void Queue::publish() noexcept {
  size_.store(elements_->size() - reserved(), std::memory_order_relaxed);
}

Status Queue::put(const KernelContext& context,
                  std::span<const Tensor> values) {
  TAGFLOW_RETURN_IF_ERROR(reserve(context, 1));
  std::ranges::copy(values, element_.begin());
  Status counted = guarded(context.node().op(),
                           [&] { return count_kept(context, element_); });
  if (!counted.ok()) {
    // Later calls would keep the memory of what did not get in.
    std::ranges::fill(element_, Tensor());
    return counted;
  }
  elements_->push(element_.data());
  publish();
  return {};
}

Status Queue::put_rows(const KernelContext& context,
                       std::span<const Tensor> values, int64_t begin,
                       int64_t end) {
  // First, since it counts: the rows below are as large.
  TAGFLOW_RETURN_IF_ERROR(reserve(context, end - begin));
  std::vector<std::vector<Tensor>> rows(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    Tensor part = values[i];
    if (end - begin < part.dim(0)) {
      TAGFLOW_ASSIGN(part, copy_rows(context, part, begin, end - begin));
    }
    TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, part, rows[i]));
  }
  for (size_t row = 0; row < size_t(end - begin); ++row) {
    for (size_t i = 0; i < rows.size(); ++i)
      element_[i] = std::move(rows[i][row]);
    elements_->push(element_.data());
  }
  publish();
  return {};
}

void Queue::take(KernelContext& context) {
  elements_->pop(element_.data());
  for (size_t i = 0; i < element_.size(); ++i)
    context.set_output(int(i), std::move(element_[i]));
  elements_->trim();
  publish();
}

namespace {

// Pads rows of one type: each fills the corner of a row of the result.
Result<Tensor> pad_rows(const KernelContext& context, DataType dtype,
                        std::span<const Tensor> rows, const Shape& row_shape) {
  Shape shape = row_shape;
  shape.insert_dim(0, int64_t(rows.size()));
  TAGFLOW_ASSIGN(Tensor padded, make_zeros(context, dtype, shape));
  const auto strides = row_major_strides(row_shape.dims());
  const int64_t run = row_shape.num_elements();
  for (size_t row = 0; row < rows.size(); ++row) {
    const Tensor& from = rows[row];
    if (from.num_elements() == 0) continue;
    const Shape own = from.shape();
    const auto own_strides = row_major_strides(own.dims());
    StridedCopy copy;
    copy.to = int64_t(row) * run;
    for (int i = 0; i < own.rank(); ++i)
      copy.add(own.dim(i), own_strides[size_t(i)], strides[size_t(i)]);
    strided_copy(context, std::move(copy), from, padded);
  }
  return padded;
}

}  // namespace

// The largest size in each dimension; without rows, 0 if it is unknown.
Shape Queue::batch_shape(std::span<const Tensor> rows, size_t i) const {
  const PartialShape& declared = spec_.shapes[i];
  Shape shape;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    int64_t largest = std::max<int64_t>(declared.dim(axis), 0);
    if (!declared.dim_known(axis))
      for (const Tensor& row : rows) largest = std::max(largest, row.dim(axis));
    shape.add_dim(largest);
  }
  return shape;
}

Status Queue::take_many(KernelContext& context, int64_t count) {
  const size_t width = element_.size();
  std::vector<std::vector<Tensor>> rows(width,
                                        std::vector<Tensor>(size_t(count)));
  for (size_t row = 0; row < size_t(count); ++row) {
    elements_->pop(element_.data());
    for (size_t i = 0; i < width; ++i) rows[i][row] = std::move(element_[i]);
  }
  Status status = guarded(context.node().op(), [&]() -> Status {
    for (size_t i = 0; i < width; ++i) {
      const Shape shape = batch_shape(rows[i], i);
      const bool is_padded =
          spec_.order == QueueSpec::Order::kPadding &&
          std::ranges::any_of(
              rows[i], [&](const Tensor& row) { return row.shape() != shape; });
      TAGFLOW_ASSIGN(context.output(int(i)),
                     is_padded
                         ? pad_rows(context, spec_.types[i], rows[i], shape)
                         : stack_rows(context, spec_.types[i], rows[i], shape));
    }
    return {};
  });
  if (!status.ok()) {
    for (size_t row = size_t(count); row > 0; --row) {
      for (size_t i = 0; i < width; ++i)
        element_[i] = std::move(rows[i][row - 1]);
      elements_->unpop(element_.data());
    }
  }
  elements_->trim();
  publish();
  return status;
}

void Queue::close() {
  closed_.store(true, std::memory_order_relaxed);
  publish();
}

// --- In checkpoints ---------------------------------------------------------

// Numbers: whether it is closed, the width, and those of the elements.
Result<std::vector<Tensor>> Queue::save() const {
  std::vector<int64_t> numbers = elements_->numbers();
  numbers.insert(numbers.begin(),
                 {is_closed() ? 1 : 0, int64_t(element_.size())});
  std::vector<Tensor> saved = elements_->all();
  saved.insert(saved.begin(), numbers_tensor(numbers));
  return saved;
}

Status Queue::restore(const KernelContext& context,
                      std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(2));
  const size_t width = element_.size();
  if (numbers[1] != int64_t(width))
    return context.fail("what was saved of {} has elements of {}, not of {}",
                        describe(), counted(size_t(numbers[1]), "component"),
                        width);
  for (size_t left = (saved.size() - 1) / width; left > 0; --left) {
    TAGFLOW_ASSIGN(const auto element, reader.tensors(width));
    TAGFLOW_RETURN_IF_ERROR(check_values(context, element, /*many=*/false));
    TAGFLOW_RETURN_IF_ERROR(put(context, element));
  }
  if (!elements_->set_numbers(std::span(numbers).subspan(2)))
    return context.fail("{} was saved with another order of its elements",
                        describe());
  if (numbers[0] != 0) close();
  return reader.end();
}

void Queue::clear() noexcept {
  elements_->clear();
  publish();
}

}  // namespace tagflow::devices
