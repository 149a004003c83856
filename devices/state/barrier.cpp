#include "devices/state/barrier.h"

#include <unordered_set>
#include <utility>

#include "devices/counted_growth.h"
#include "devices/state/component_texts.h"
#include "devices/tensor_rows.h"
#include "graph/counted.h"

namespace tagflow::devices {

Status BarrierSpec::check_same(std::string_view barrier,
                               const BarrierSpec& other) const {
  const auto differs = [&](const std::string& own, const std::string& asked) {
    return invalid_argument(
        "{} exists with components of {}, but the node "
        "asks for {}",
        barrier, own, asked);
  };
  if (types != other.types)
    return differs("types " + types_text(types), types_text(other.types));
  if (shapes == other.shapes) return {};
  return differs(shapes_text(shapes), shapes_text(other.shapes));
}

std::string Barrier::describe() const {
  return fmt::format("{} \"{}\"", kKind, name_);
}

std::string Barrier::describe_state() const {
  const size_t takers = waiting(Line::kOut);
  return fmt::format("{} has {} ready and {} incomplete{}", describe(),
                     counted(size_t(ready()), "tuple"), incomplete(),
                     takers == 0
                         ? std::string()
                         : fmt::format(", {} wait{}", counted(takers, "take"),
                                       takers == 1 ? "s" : ""));
}

Status Barrier::check_keys(const KernelContext& context, const Tensor& keys,
                           size_t part) const {
  std::unordered_set<std::string_view> seen;
  for (const std::string& key : keys.flat<std::string>()) {
    const auto it = incomplete_.find(key);
    const bool is_there =
        it != incomplete_.end() && it->second.parts[part].valid();
    if (is_there || !seen.insert(key).second)
      return context.fail("key \"{}\" of {} has a value for component {}", key,
                          describe(), part);
    if (it == incomplete_.end() && is_closed_)
      return error(Code::kCancelled,
                   "[{}] {} is closed, and has nothing of key \"{}\"",
                   context.node().op(), describe(), key);
  }
  return {};
}

size_t Barrier::bytes_of_tuple(std::string_view key) const {
  return kNodeBytes + sizeof(std::pair<std::string, Incomplete>) + key.size() +
         spec_.types.size() * sizeof(Tensor);
}

Status Barrier::insert(const KernelContext& context, const Tensor& keys,
                       size_t part, const Tensor& values) {
  if (drops_incomplete_)
    return error(Code::kCancelled, "[{}] {} is closed", context.node().op(),
                 describe());
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, part));
  std::vector<Tensor> rows;
  TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, values, rows));
  // Allocations come first, so that an error changes nothing.
  const size_t width = spec_.types.size();
  const std::string* const names = keys.data<std::string>();
  std::unordered_map<std::string, Incomplete> begun;
  std::map<Order, Ready> completed;
  size_t bytes = charge_.bytes();
  bool begins = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto known = incomplete_.find(names[i]);
    const bool is_new = known == incomplete_.end();
    begins = begins || is_new;
    const size_t missing = (is_new ? width : known->second.missing) - 1;
    if (is_new) bytes += bytes_of_tuple(names[i]);
    if (missing > 0 && !is_new) continue;
    Incomplete tuple{insertions_, missing, std::vector<Tensor>(width)};
    if (!is_new) {
      tuple.insertion = known->second.insertion;
      tuple.parts = known->second.parts;
    }
    tuple.parts[part] = rows[i];
    if (missing > 0) {
      begun.emplace(names[i], std::move(tuple));
    } else {
      completed.emplace(
          Order(tuple.insertion, completions_ + int64_t(completed.size())),
          Ready{names[i], std::move(tuple.parts)});
    }
  }
  incomplete_.reserve(incomplete_.size() + begun.size());
  TAGFLOW_RETURN_IF_ERROR(context.count(charge_, bytes, [this] {
    return fmt::format("{} with {} tuples", describe(), ready() + incomplete());
  }));
  commit(keys, part, rows, begun, completed);
  if (begins) ++insertions_;
  return {};
}

void Barrier::commit(const Tensor& keys, size_t part, std::vector<Tensor>& rows,
                     std::unordered_map<std::string, Incomplete>& begun,
                     std::map<Order, Ready>& completed) noexcept {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto known = incomplete_.find(keys.data<std::string>()[i]);
    if (known == incomplete_.end()) continue;
    known->second.parts[part] = std::move(rows[i]);
    if (--known->second.missing == 0) incomplete_.erase(known);
  }
  incomplete_.merge(begun);
  completions_ += int64_t(completed.size());
  ready_.merge(completed);
  publish();
}

// Shapes that are not declared.
Status Barrier::check_shapes(const KernelContext& context, size_t part,
                             std::span<const Tensor> parts) const {
  for (const Tensor& each : parts)
    if (each.shape() != parts[0].shape())
      return context.fail(
          "component {} of {} was inserted as {} and as {}, which have no "
          "batch",
          part, describe(), parts[0].describe(), each.describe());
  return {};
}

Status Barrier::take(KernelContext& context, int64_t count) {
  TAGFLOW_ASSIGN(Tensor * insertions, context.allocate_output(0, {count}));
  TAGFLOW_ASSIGN(Tensor * keys, context.allocate_output(1, {count}));
  std::vector<std::vector<Tensor>> parts(spec_.types.size());
  auto it = ready_.begin();
  for (int64_t i = 0; i < count; ++i, ++it) {
    insertions->mutable_data<int64_t>()[i] = it->first.first;
    keys->mutable_data<std::string>()[i] = it->second.key;
    for (size_t part = 0; part < parts.size(); ++part)
      parts[part].push_back(it->second.parts[part]);
  }
  for (size_t part = 0; part < parts.size(); ++part) {
    Shape shape;
    if (spec_.shapes[part].has_rank()) {
      shape = *spec_.shapes[part].to_shape();
    } else if (count > 0) {
      TAGFLOW_RETURN_IF_ERROR(check_shapes(context, part, parts[part]));
      shape = parts[part][0].shape();
    }
    TAGFLOW_ASSIGN(context.output(2 + int(part)),
                   stack_rows(context, spec_.types[part], parts[part], shape));
  }
  for (auto taken = ready_.begin(); taken != it; ++taken)
    charge_.reduce(bytes_of_tuple(taken->second.key));
  ready_.erase(ready_.begin(), it);
  publish();
  return {};
}

void Barrier::close(bool drops_incomplete) noexcept {
  is_closed_ = true;
  drops_incomplete_ = drops_incomplete_ || drops_incomplete;
  if (drops_incomplete_) {
    for (const auto& [key, tuple] : incomplete_)
      charge_.reduce(bytes_of_tuple(key));
    incomplete_.clear();
  }
  publish();
}

// Numbers: of insertions and completions, how it is closed, and of each tuple
// those of its insertion and its completion, which is -1 if it is incomplete;
// then the keys, and the parts of each tuple.
Result<std::vector<Tensor>> Barrier::save() const {
  std::vector<int64_t> numbers = {insertions_, completions_, is_closed_ ? 1 : 0,
                                  drops_incomplete_ ? 1 : 0};
  std::vector<std::string> keys;
  std::vector<Tensor> saved(2);
  for (const auto& [order, tuple] : ready_) {
    numbers.insert(numbers.end(), {order.first, order.second});
    keys.push_back(tuple.key);
    saved.insert(saved.end(), tuple.parts.begin(), tuple.parts.end());
  }
  for (const auto& [key, tuple] : incomplete_) {
    numbers.insert(numbers.end(), {tuple.insertion, -1});
    keys.push_back(key);
    saved.insert(saved.end(), tuple.parts.begin(), tuple.parts.end());
  }
  saved[0] = numbers_tensor(numbers);
  saved[1] = Tensor::of<std::string>({int64_t(keys.size())}, keys);
  return saved;
}

Status Barrier::restore(const KernelContext& context,
                        std::span<const Tensor> saved) {
  constexpr size_t kOwn = 4;
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(kOwn));
  TAGFLOW_ASSIGN(const auto keys, reader.tensors(1));
  if (keys[0].dtype() != DataType::kString ||
      2 * keys[0].num_elements() != int64_t(numbers.size() - kOwn))
    return damaged_contents(context);
  size_t bytes = 0;
  for (size_t i = 0; i < size_t(keys[0].num_elements()); ++i) {
    const std::string& key = keys[0].data<std::string>()[i];
    TAGFLOW_ASSIGN(const auto tensors, reader.tensors(spec_.types.size()));
    std::vector<Tensor> parts(tensors.begin(), tensors.end());
    size_t missing = 0;
    for (size_t part = 0; part < parts.size(); ++part) {
      if (!parts[part].valid()) {
        ++missing;
      } else if (parts[part].dtype() != spec_.types[part] ||
                 !spec_.shapes[part].accepts(parts[part].shape())) {
        return context.fail("what was saved of {} has {} as component {}",
                            describe(), parts[part].describe(), part);
      }
    }
    bytes += bytes_of_tuple(key);
    TAGFLOW_RETURN_IF_ERROR(
        context.count(charge_, bytes, [this] { return describe(); }));
    const int64_t insertion = numbers[kOwn + 2 * i];
    const int64_t completion = numbers[kOwn + 2 * i + 1];
    if ((completion < 0) != (missing > 0)) return damaged_contents(context);
    if (missing > 0) {
      incomplete_.insert_or_assign(
          key, Incomplete{insertion, missing, std::move(parts)});
    } else {
      ready_.insert_or_assign(Order(insertion, completion),
                              Ready{key, std::move(parts)});
    }
  }
  insertions_ = numbers[0];
  completions_ = numbers[1];
  is_closed_ = numbers[2] != 0;
  drops_incomplete_ = numbers[3] != 0;
  publish();
  return reader.end();
}

void Barrier::publish() noexcept {
  num_ready_.store(int64_t(ready_.size()), std::memory_order_relaxed);
  num_incomplete_.store(int64_t(incomplete_.size()), std::memory_order_relaxed);
}

void Barrier::clear() noexcept {
  incomplete_.clear();
  ready_.clear();
  charge_.clear();
  publish();
}

}  // namespace tagflow::devices
