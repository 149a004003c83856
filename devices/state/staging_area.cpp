#include "devices/state/staging_area.h"

#include <algorithm>
#include <utility>

#include "devices/counted_growth.h"
#include "devices/outside_memory.h"
#include "graph/counted.h"

namespace tagflow::devices {

int64_t bytes_of(std::span<const Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.valid()) bytes += int64_t(tensor.bytes());
  return bytes;
}

std::string StagingArea::describe() const {
  return fmt::format("staging area \"{}\"", name_);
}

std::string StagingArea::describe_state() const {
  std::string text = fmt::format(
      "{} has {}{}", describe(),
      limits_.capacity > 0 ? fmt::format("{} of ", size()) : std::string(),
      counted(size_t(limits_.capacity > 0 ? limits_.capacity : size()),
              "tuple"));
  const auto add = [&](Line line, std::string_view what) {
    if (const size_t count = waiting(line); count > 0)
      text +=
          fmt::format(", {} wait{} to {}", count, count == 1 ? "s" : "", what);
  };
  add(Line::kIn, "put");
  add(Line::kOut, "take");
  return text;
}

Status StagingArea::check_bytes(const KernelContext& context,
                                int64_t bytes) const {
  if (limits_.bytes == 0 || bytes <= limits_.bytes) return {};
  return error(Code::kResourceExhausted,
               "[{}] tensors of {} bytes do not fit {}, whose memory_limit is "
               "{} bytes",
               context.node().op(), bytes, describe(), limits_.bytes);
}

bool StagingArea::has_space(int64_t tuples, int64_t bytes) const {
  if (makes_room()) return true;
  return (limits_.capacity == 0 || size() + tuples <= limits_.capacity) &&
         (limits_.bytes == 0 || bytes_ + bytes <= limits_.bytes);
}

namespace {

size_t bytes_of_tuple(size_t width) {
  return kNodeBytes + sizeof(StagingList::Tuple) + width * sizeof(Tensor);
}

}  // namespace

Status StagingArea::count_tuple(const KernelContext& context, size_t width) {
  return context.count(
      charge_, charge_.bytes() + bytes_of_tuple(width),
      [this] { return fmt::format("{} with {} tuples", describe(), size()); });
}

void StagingArea::discount_tuple(size_t width) noexcept {
  charge_.reduce(bytes_of_tuple(width));
}

// --- In order ---------------------------------------------------------------

Status StagingList::put(const KernelContext& context,
                        std::span<const Tensor> values) {
  Tuple kept(values.begin(), values.end());
  TAGFLOW_RETURN_IF_ERROR(count_kept(context, kept));
  const Tuple& tuple = tuples_.emplace_back(std::move(kept));
  if (Status status = count_tuple(context, tuple.size()); !status.ok()) {
    tuples_.pop_back();
    return status;
  }
  note(int64_t(tuples_.size()), bytes() + bytes_of(values));
  return {};
}

const StagingList::Tuple* StagingList::at(int64_t index) const {
  return index < int64_t(tuples_.size()) ? &tuples_[size_t(index)] : nullptr;
}

StagingList::Tuple StagingList::pop() noexcept {
  Tuple tuple = std::move(tuples_.front());
  tuples_.pop_front();
  discount_tuple(tuple.size());
  note(int64_t(tuples_.size()), bytes() - bytes_of(tuple));
  return tuple;
}

void StagingList::clear() noexcept {
  tuples_.clear();
  discount_all();
  note(0, 0);
}

// Numbers: of tensors, tuple by tuple.
Result<std::vector<Tensor>> StagingList::save() const {
  std::vector<int64_t> widths;
  std::vector<Tensor> saved(1);
  for (const Tuple& tuple : tuples_) {
    widths.push_back(int64_t(tuple.size()));
    saved.insert(saved.end(), tuple.begin(), tuple.end());
  }
  saved[0] = numbers_tensor(widths);
  return saved;
}

Status StagingList::restore(const KernelContext& context,
                            std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> widths, reader.numbers());
  for (const int64_t width : widths) {
    TAGFLOW_ASSIGN(const auto tuple, reader.tensors(size_t(width)));
    TAGFLOW_RETURN_IF_ERROR(put(context, tuple));
  }
  return reader.end();
}

// --- By key -----------------------------------------------------------------

bool StagingMap::may_put(int64_t key, int64_t bytes) const {
  const bool is_known = incomplete_.contains(key);
  // An incomplete tuple takes a place, too.
  const int64_t others = incomplete();
  return has_space(others + (is_known ? 0 : 1), bytes);
}

Status StagingMap::put(const KernelContext& context, int64_t key, size_t width,
                       std::span<const int32_t> indices,
                       std::span<const Tensor> values) {
  Tuple kept(values.begin(), values.end());
  TAGFLOW_RETURN_IF_ERROR(count_kept(context, kept));
  const auto [it, is_new] = incomplete_.try_emplace(key, width);
  if (is_new) {
    if (Status status = count_tuple(context, width); !status.ok()) {
      incomplete_.erase(it);
      return status;
    }
  }
  Tuple& tuple = it->second;
  Status status;
  if (tuple.size() != width)
    status = context.fail("key {} has a tuple of {}, not of {}", key,
                          counted(tuple.size(), "tensor"), width);
  for (const int32_t index : indices)
    if (status.ok() && tuple[size_t(index)].valid())
      status =
          context.fail("tensor {} of key {} was put in before", index, key);
  if (!status.ok()) return status;
  for (size_t i = 0; i < indices.size(); ++i)
    tuple[size_t(indices[i])] = std::move(kept[i]);
  // If a key is complete already, its first tuple stays.
  if (std::ranges::all_of(tuple, &Tensor::valid)) {
    if (auto node = incomplete_.extract(it); complete_.contains(key)) {
      note(size(), bytes() - bytes_of(node.mapped()));
      discount_tuple(width);
    } else {
      complete_.insert(std::move(node));
    }
  }
  count(bytes_of(values));
  return {};
}

const StagingMap::Tuple* StagingMap::find(int64_t key) const {
  const auto it = complete_.find(key);
  return it == complete_.end() ? nullptr : &it->second;
}

std::optional<int64_t> StagingMap::any_key() const {
  if (complete_.empty()) return std::nullopt;
  return complete_.begin()->first;
}

void StagingMap::take(int64_t key, std::span<const int32_t> indices) noexcept {
  const auto it = complete_.find(key);
  int64_t less = 0;
  for (const int32_t index : indices) {
    Tensor& tensor = it->second[size_t(index)];
    less += int64_t(tensor.bytes());
    tensor.reset();
  }
  if (std::ranges::none_of(it->second, &Tensor::valid)) {
    discount_tuple(it->second.size());
    complete_.erase(it);
  }
  count(-less);
}

void StagingMap::count(int64_t more_bytes) {
  note(int64_t(complete_.size()), bytes() + more_bytes);
}

// Numbers: key, width, and whether it is complete, tuple by tuple.
Result<std::vector<Tensor>> StagingMap::save() const {
  std::vector<int64_t> numbers;
  std::vector<Tensor> saved(1);
  for (const auto* tuples : {&complete_, &incomplete_})
    for (const auto& [key, tuple] : *tuples) {
      numbers.insert(numbers.end(), {key, int64_t(tuple.size()),
                                     tuples == &complete_ ? 1 : 0});
      saved.insert(saved.end(), tuple.begin(), tuple.end());
    }
  saved[0] = numbers_tensor(numbers);
  return saved;
}

Status StagingMap::restore(const KernelContext& context,
                           std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers());
  int64_t kept_bytes = 0;
  for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
    TAGFLOW_ASSIGN(const auto tensors, reader.tensors(size_t(numbers[i + 1])));
    Tuple tuple(tensors.begin(), tensors.end());
    TAGFLOW_RETURN_IF_ERROR(count_kept(context, tuple));
    TAGFLOW_RETURN_IF_ERROR(count_tuple(context, tuple.size()));
    kept_bytes += bytes_of(tuple);
    auto& tuples = numbers[i + 2] != 0 ? complete_ : incomplete_;
    tuples.insert_or_assign(numbers[i], std::move(tuple));
  }
  count(kept_bytes);
  return reader.end();
}

void StagingMap::clear() noexcept {
  complete_.clear();
  incomplete_.clear();
  discount_all();
  note(0, 0);
}

}  // namespace tagflow::devices
