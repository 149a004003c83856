#include "devices/state/table.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstring>
#include <utility>

#include "devices/copy.h"
#include "devices/counted_growth.h"
#include "devices/state/guard.h"
#include "devices/string_writer.h"

namespace tagflow::devices {
namespace {

// Mixes all bits: Steele et al., "Fast splittable pseudorandom number
// generators", with the constants of Stafford's variant 13.
uint32_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return uint32_t(bits ^ (bits >> 31));
}

bool ends_with(const Shape& shape, const Shape& end) {
  const auto dims = shape.dims(), last = end.dims();
  return dims.size() >= last.size() &&
         std::equal(last.begin(), last.end(), dims.end() - last.size());
}

// For a table of kind kFixed.
std::string text_of(const Tensor& keys, int64_t at) {
  if (keys.dtype() == DataType::kString)
    return fmt::format("{:?}", keys.data<std::string>()[at]);
  std::string text;
  visit_integer(keys.dtype(), [&]<class T>(TypeTag<T>) {
    text = std::to_string(keys.data<T>()[at]);
  });
  return text.empty() ? fmt::format("number {}", at) : text;
}

}  // namespace

std::string Table::describe() const {
  return fmt::format("{} \"{}\"", kKind, name_);
}

// --- Checks -----------------------------------------------------------------

Result<int64_t> Table::count_keys(const KernelContext& context,
                                  const Tensor& keys) const {
  if (keys.dtype() != spec_.key)
    return context.fail("{} has keys of {}, not of {}", describe(),
                        dtype_name(spec_.key), dtype_name(keys.dtype()));
  if (!ends_with(keys.shape(), spec_.key_shape))
    return context.fail(
        "keys of {} have shape {}, but the shape of {} does not end in it",
        describe(), spec_.key_shape.to_string(), keys.describe());
  const int64_t each = spec_.key_shape.num_elements();
  return each == 0 ? 0 : keys.num_elements() / each;
}

Table::Reserved Table::reserved(const Tensor& keys, int64_t at) const {
  const auto is = [&](const Tensor& key) {
    return key.valid() && same_key(keys, at, key, 0);
  };
  if (is(spec_.empty_key)) return Reserved::kEmpty;
  return is(spec_.deleted_key) ? Reserved::kDeleted : Reserved::kNone;
}

Status Table::check_keys(const KernelContext& context, const Tensor& keys,
                         int64_t count) const {
  if (!spec_.empty_key.valid()) return {};
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    if (const Reserved kind = reserved(keys, i); kind != Reserved::kNone)
      return context.fail(
          "key {} is the {} of {}, which is reserved", i,
          kind == Reserved::kEmpty ? "empty_key" : "deleted_key", describe());
  }
  return {};
}

Shape Table::shape_of_values(const Tensor& keys) const {
  const auto dims = keys.shape();
  Shape shape;
  for (int i = 0; i < dims.rank() - spec_.key_shape.rank(); ++i)
    shape.add_dim(dims.dim(i));
  for (const int64_t dim : spec_.value_shape.dims()) shape.add_dim(dim);
  return shape;
}

Result<int64_t> Table::check_entries(const KernelContext& context,
                                     const Tensor& keys,
                                     const Tensor& values) const {
  TAGFLOW_RETURN_IF_ERROR(ended());
  TAGFLOW_ASSIGN(const int64_t count, count_keys(context, keys));
  if (values.dtype() != spec_.value)
    return context.fail("{} has values of {}, not of {}", describe(),
                        dtype_name(spec_.value), dtype_name(values.dtype()));
  if (const Shape wanted = shape_of_values(keys); values.shape() != wanted)
    return context.fail("values must be of shape {} for keys {} of {}, not {}",
                        wanted.to_string(), keys.describe(), describe(),
                        values.describe());
  return count;
}

// --- Keys -------------------------------------------------------------------

uint32_t Table::hash_of(const Tensor& keys, int64_t at) const {
  const int64_t each = spec_.key_shape.num_elements();
  uint64_t hash = 0;
  const auto add = [&hash](uint64_t bits) {
    hash = mixed(hash * 31 + bits) + (hash << 6);
  };
  if (spec_.key == DataType::kString) {
    const std::string* const texts = keys.data<std::string>() + at * each;
    for (int64_t i = 0; i < each; ++i) add(std::hash<std::string>()(texts[i]));
  } else {
    const size_t size = dtype_size(spec_.key);
    const auto* bytes =
        static_cast<const std::byte*>(keys.raw()) + size_t(at * each) * size;
    for (int64_t i = 0; i < each; ++i, bytes += size) {
      uint64_t bits[2] = {};
      std::memcpy(bits, bytes, std::min(size, sizeof bits));
      add(bits[0] + bits[1] * 31);
    }
  }
  return uint32_t(hash);
}

bool Table::same_key(const Tensor& a, int64_t a_at, const Tensor& b,
                     int64_t b_at) const {
  const int64_t each = spec_.key_shape.num_elements();
  if (spec_.key == DataType::kString) {
    const std::string* const texts = a.data<std::string>() + a_at * each;
    return std::equal(texts, texts + each, b.data<std::string>() + b_at * each);
  }
  const size_t bytes = size_t(each) * dtype_size(spec_.key);
  return std::memcmp(
             static_cast<const std::byte*>(a.raw()) + size_t(a_at) * bytes,
             static_cast<const std::byte*>(b.raw()) + size_t(b_at) * bytes,
             bytes) == 0;
}

uint32_t Table::row_of(const Tensor& keys, int64_t at, uint32_t hash) const {
  return index_.find(hash, [&](uint32_t row) {
    return same_key(keys, at, keys_, int64_t(row));
  });
}

// --- Reading ----------------------------------------------------------------

Status Table::find(KernelContext& context, const Tensor& keys,
                   const Tensor& defaults) const {
  TAGFLOW_RETURN_IF_ERROR(ended());
  TAGFLOW_ASSIGN(const int64_t count, count_keys(context, keys));
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, count));
  if (defaults.dtype() != spec_.value)
    return context.fail("{} has values of {}, not of {}", describe(),
                        dtype_name(spec_.value), dtype_name(defaults.dtype()));
  const Shape shape = shape_of_values(keys);
  const bool is_one = defaults.shape() == spec_.value_shape;
  if (!is_one && defaults.shape() != shape)
    return context.fail(
        "default_value must be of shape {}, or {}, for {}, not {}",
        spec_.value_shape.to_string(), shape.to_string(), describe(),
        defaults.describe());
  if (!is_initialized())
    return error(Code::kFailedPrecondition, "[{}] {} is not initialized",
                 context.node().op(), describe());
  // As in TensorFlow: for the other kinds the first value serves for all keys.
  const bool is_by_key = !is_one && (spec_.kind == TableSpec::Kind::kScalar ||
                                     spec_.kind == TableSpec::Kind::kTensor);
  TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(0, shape));
  const int64_t each = spec_.value_shape.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    const uint32_t row = row_of(keys, i, hash_of(keys, i));
    if (row == TableIndex::kNone) {
      copy_elements(defaults, is_by_key ? i * each : 0, *values, i * each,
                    each);
    } else {
      copy_elements(values_, int64_t(row) * each, *values, i * each, each);
    }
  }
  return {};
}

Status Table::export_to(KernelContext& context) const {
  TAGFLOW_RETURN_IF_ERROR(ended());
  if (!is_initialized())
    return error(Code::kAborted, "[{}] {} is not initialized",
                 context.node().op(), describe());
  const auto copy = [&](int output, const Tensor& rows,
                        const Shape& row) -> Status {
    Shape shape = row;
    shape.insert_dim(0, size_);
    TAGFLOW_ASSIGN(Tensor * all, context.allocate_output(output, shape));
    StridedCopy elements;
    elements.add(all->num_elements(), 1, 1);
    strided_copy(context, std::move(elements), rows, *all);
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(copy(0, keys_, spec_.key_shape));
  return copy(1, values_, spec_.value_shape);
}

// --- Changing ---------------------------------------------------------------

Status Table::reserve(const KernelContext& context, int64_t rows) {
  if (rows <= capacity_) return {};
  if (rows >= int64_t(TableIndex::kNone))
    return error(Code::kResourceExhausted, "[{}] {} would have {} entries",
                 context.node().op(), describe(), rows);
  const int64_t capacity = std::max({rows, 2 * capacity_, int64_t(16)});
  const auto places = [&](DataType dtype, const Shape& row) -> Result<Tensor> {
    Shape shape = row;
    shape.insert_dim(0, capacity);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    Result<Tensor> made = Tensor::allocate(dtype, shape, context.host_memory());
    if (made.ok()) return made;
    return Status(made.status())
        .with_prefix(fmt::format("[{}] {} with {} entries: ",
                                 context.node().op(), describe(), size_));
  };
  const auto move = [this](Tensor& from, Tensor& to, const Shape& row) {
    if (from.num_elements() == 0) return;
    if (to.dtype() == DataType::kString &&
        to.buffer()->allocator == from.buffer()->allocator) {
      // With those of removed rows, whose bytes count, too.
      exchange_strings(from, 0, to, 0, from.num_elements());
    } else {
      copy_elements(from, 0, to, 0, size_ * row.num_elements());
    }
  };
  TAGFLOW_ASSIGN(Tensor keys, places(spec_.key, spec_.key_shape));
  TAGFLOW_ASSIGN(Tensor values, places(spec_.value, spec_.value_shape));
  TAGFLOW_RETURN_IF_ERROR(grow_counted(
      context, charge_, index_.bytes_for(size_t(capacity)),
      [this] { return describe(); },
      [&] { index_.reserve(size_t(capacity)); }));
  move(keys_, keys, spec_.key_shape);
  move(values_, values, spec_.value_shape);
  keys_ = std::move(keys);
  values_ = std::move(values);
  capacity_ = capacity;
  return {};
}

namespace {

using Rows = boost::container::small_vector<uint32_t, 4>;

void exchange_rows(Tensor& a, int64_t a_at, Tensor& b, int64_t b_at,
                   int64_t size) {
  if (a.dtype() == DataType::kString)
    return exchange_strings(a, a_at * size, b, b_at * size, size);
  visit_movable(a.dtype(), [&]<class T>(TypeTag<T>) {
    T* const from = static_cast<T*>(a.mutable_raw()) + a_at * size;
    std::swap_ranges(from, from + size,
                     static_cast<T*>(b.mutable_raw()) + b_at * size);
  });
}

// Strings are exchanged, since a copy would need memory, which may be missing.
void move_row(Tensor& from, int64_t from_at, Tensor& to, int64_t to_at,
              int64_t size) {
  if (to.dtype() == DataType::kString) {
    exchange_strings(from, from_at * size, to, to_at * size, size);
  } else {
    copy_elements(from, from_at * size, to, to_at * size, size);
  }
}

}  // namespace

// Entries that are inserted one by one. They are taken back unless they are
// kept.
class Table::Insertion {
 public:
  Insertion(Table& table, Tensor keys, Tensor values)
      : table_(table),
        keys_(std::move(keys)),
        values_(std::move(values)),
        before_(table.size_) {}
  ~Insertion() {
    if (!is_kept_) take_back();
  }
  Insertion(const Insertion&) = delete;
  Insertion& operator=(const Insertion&) = delete;

  // Inserts those of `count` entries that are not reserved. REQUIRES: there is
  // room for them, and check_entries() accepts them.
  Status add(const KernelContext& context, int64_t count) {
    // The memory is taken before a row changes.
    if (!is_kept_) rows_.reserve(size_t(count));
    TAGFLOW_RETURN_IF_ERROR(bring(keys_, table_.keys_));
    TAGFLOW_RETURN_IF_ERROR(bring(values_, table_.values_));
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      const bool is_entry = table_.reserved(keys_, i) == Reserved::kNone;
      uint32_t row = TableIndex::kNone;
      if (is_entry) {
        TAGFLOW_ASSIGN(row, insert(i));
      }
      if (!is_kept_) rows_.push_back(row);
    }
    return {};
  }
  // What is added then need not be taken back, which costs less.
  void keep() { is_kept_ = true; }

 private:
  // New strings are in the memory of the table's.
  static Status bring(Tensor& rows, const Tensor& own) {
    if (rows.dtype() != DataType::kString || own.buffer() == nullptr) return {};
    TAGFLOW_ASSIGN(rows, copy_strings(rows, *own.buffer()->allocator));
    return {};
  }

  Result<uint32_t> insert(int64_t at) {
    const int64_t size = table_.spec_.value_shape.num_elements();
    const uint32_t hash = table_.hash_of(keys_, at);
    uint32_t row = table_.row_of(keys_, at, hash);
    if (row < before_ && !is_kept_) {
      TAGFLOW_RETURN_IF_ERROR(own_values());
      exchange_rows(values_, at, table_.values_, row, size);
      return row;
    }
    const bool is_new = row == TableIndex::kNone;
    if (is_new) row = uint32_t(table_.size_);
    move_row(values_, at, table_.values_, row, size);
    if (!is_new) return row;
    move_row(keys_, at, table_.keys_, row,
             table_.spec_.key_shape.num_elements());
    table_.index_.insert(hash, row);
    ++table_.size_;
    return row;
  }

  // The values that are replaced take the places of the new ones.
  Status own_values() {
    if (owns_values_ || values_.dtype() == DataType::kString) return {};
    TAGFLOW_ASSIGN(Tensor copy,
                   Tensor::allocate(values_.dtype(), values_.shape()));
    copy_elements(values_, 0, copy, 0, values_.num_elements());
    values_ = std::move(copy);
    owns_values_ = true;
    return {};
  }

  void take_back() {
    if (before_ == 0) return table_.clear();
    const int64_t size = table_.spec_.value_shape.num_elements();
    for (size_t i = rows_.size(); i-- > 0;)
      if (rows_[i] < before_)
        exchange_rows(values_, int64_t(i), table_.values_, rows_[i], size);
    while (table_.size_ > before_) {
      const auto row = uint32_t(--table_.size_);
      table_.index_.erase(table_.hash_of(table_.keys_, row), row);
    }
  }

  Table& table_;
  Tensor keys_, values_;
  const int64_t before_;  // the table's size
  Rows rows_;             // of each entry; kNone: it was reserved
  bool owns_values_ = false, is_kept_ = false;
};

Status Table::insert(const KernelContext& context, const Tensor& keys,
                     const Tensor& values) {
  TAGFLOW_ASSIGN(const int64_t count, check_entries(context, keys, values));
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, count));
  TAGFLOW_RETURN_IF_ERROR(reserve(context, size_ + count));
  Insertion insertion(*this, keys, values);
  // A short change is made inside the gate of the step.
  constexpr int64_t kShort = 256;
  if (count > kShort) TAGFLOW_RETURN_IF_ERROR(insertion.add(context, count));
  const Commit commit = context.commit();
  if (!commit) return too_late(context);
  insertion.keep();
  return count > kShort ? Status() : insertion.add(context, count);
}

// Rows that are removed one by one. They come back unless they are dropped.
class Table::Removal {
 public:
  explicit Removal(Table& table) : table_(table) {}
  ~Removal() {
    while (!rows_.empty()) {
      put_back(rows_.back());
      rows_.pop_back();
    }
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // Removes key `at` if the table has it.
  void add(const Tensor& keys, int64_t at) {
    const uint32_t hash = table_.hash_of(keys, at);
    const uint32_t row = table_.row_of(keys, at, hash);
    if (row == TableIndex::kNone) return;
    rows_.push_back(row);
    table_.index_.erase(hash, row);
    // The last row takes its place.
    const auto last = uint32_t(--table_.size_);
    if (row == last) return;
    table_.index_.renumber(table_.hash_of(table_.keys_, last), last, row);
    exchange(row, last);
  }
  void drop() { rows_.clear(); }

 private:
  void put_back(uint32_t row) {
    const auto last = uint32_t(table_.size_++);
    if (row != last) {
      exchange(row, last);
      table_.index_.renumber(table_.hash_of(table_.keys_, last), row, last);
    }
    table_.index_.insert(table_.hash_of(table_.keys_, row), row);
  }
  void exchange(uint32_t a, uint32_t b) {
    exchange_rows(table_.keys_, a, table_.keys_, b,
                  table_.spec_.key_shape.num_elements());
    exchange_rows(table_.values_, a, table_.values_, b,
                  table_.spec_.value_shape.num_elements());
  }

  Table& table_;
  Rows rows_;  // in the order of their removal
};

Status Table::remove(const KernelContext& context, const Tensor& keys) {
  TAGFLOW_RETURN_IF_ERROR(ended());
  TAGFLOW_ASSIGN(const int64_t count, count_keys(context, keys));
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, count));
  Removal removal(*this);
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    removal.add(keys, i);
  }
  const Commit commit = context.commit();
  if (!commit) return too_late(context);
  removal.drop();
  return {};
}

Status Table::import_all(const KernelContext& context, const Tensor& keys,
                         const Tensor& values) {
  if (spec_.kind == TableSpec::Kind::kFixed) return fill(context, keys, values);
  TAGFLOW_ASSIGN(const int64_t count, check_entries(context, keys, values));
  int64_t entries = 0;
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    if (reserved(keys, i) == Reserved::kNone) ++entries;
  }
  Table imported(name_, spec_);
  TAGFLOW_RETURN_IF_ERROR(imported.reserve(context, entries));
  Insertion insertion(imported, keys, values);
  insertion.keep();
  TAGFLOW_RETURN_IF_ERROR(insertion.add(context, count));
  const Commit commit = context.commit();
  if (!commit) return too_late(context);
  std::swap(index_, imported.index_);
  std::swap(keys_, imported.keys_);
  std::swap(values_, imported.values_);
  std::swap(charge_, imported.charge_);
  capacity_ = imported.capacity_;
  size_ = imported.size_;
  return {};
}

bool Table::has_entry(const Tensor& keys, const Tensor& values,
                      int64_t at) const {
  const uint32_t row = row_of(keys, at, hash_of(keys, at));
  if (row == TableIndex::kNone) return false;
  bool is_same = true;
  visit_movable(spec_.value, [&]<class T>(TypeTag<T>) {
    if constexpr (requires(const T& x) { x == x; })
      is_same = static_cast<const T*>(values.raw())[at] ==
                static_cast<const T*>(values_.raw())[row];
  });
  return is_same;
}

Status Table::fill(const KernelContext& context, const Tensor& keys,
                   const Tensor& values) {
  TAGFLOW_ASSIGN(const int64_t count, check_entries(context, keys, values));
  if (is_filled_) {
    // As in TensorFlow, entries that it has may come again.
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      if (!has_entry(keys, values, i))
        return error(Code::kFailedPrecondition,
                     "[{}] {} is already initialized", context.node().op(),
                     describe());
    }
    return {};
  }
  Status status = guarded(context.node().op(), [&] {
    return fill_empty(context, keys, values, count);
  });
  if (!status.ok()) clear();
  return status;
}

Status Table::fill_empty(const KernelContext& context, const Tensor& keys,
                         const Tensor& values, int64_t count) {
  TAGFLOW_RETURN_IF_ERROR(reserve(context, count));
  Insertion insertion(*this, keys, values);
  insertion.keep();  // fill() clears the table after an error
  TAGFLOW_RETURN_IF_ERROR(insertion.add(context, count));
  // A repeated key gets its last value: if the values differ, that is an error.
  for (int64_t i = 0; size_ < count && i < count; ++i) {
    context.check_cancelled();
    if (!has_entry(keys, values, i))
      return error(Code::kFailedPrecondition,
                   "[{}] key {} of {} is there twice, with different values",
                   context.node().op(), text_of(keys, i), describe());
  }
  const Commit commit = context.commit();
  if (!commit) return too_late(context);
  is_filled_ = true;
  return {};
}

void Table::clear() noexcept {
  index_.clear();
  keys_.reset();
  values_.reset();
  charge_.clear();
  capacity_ = size_ = 0;
}

// --- In checkpoints ---------------------------------------------------------

// Whether it was filled, and all keys and values, in the order of their rows.
Result<std::vector<Tensor>> Table::save() const {
  TAGFLOW_RETURN_IF_ERROR(ended());
  const auto rows = [this](const Tensor& all, DataType dtype,
                           Shape shape) -> Result<Tensor> {
    const int64_t each = shape.num_elements();
    shape.insert_dim(0, size_);
    TAGFLOW_ASSIGN(Tensor copy, Tensor::allocate(dtype, shape));
    if (size_ > 0) copy_elements(all, 0, copy, 0, size_ * each);
    return copy;
  };
  TAGFLOW_ASSIGN(Tensor keys, rows(keys_, spec_.key, spec_.key_shape));
  TAGFLOW_ASSIGN(Tensor values, rows(values_, spec_.value, spec_.value_shape));
  return std::vector<Tensor>{numbers_tensor({{is_filled_ ? 1 : 0}}),
                             std::move(keys), std::move(values)};
}

Status Table::restore(const KernelContext& context,
                      std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(1));
  TAGFLOW_ASSIGN(const auto entries, reader.tensors(2));
  TAGFLOW_RETURN_IF_ERROR(reader.end());
  // One that was not filled waits for its first initialization.
  if (!is_initialized() && numbers[0] == 0) return {};
  return import_all(context, entries[0], entries[1]);
}

}  // namespace tagflow::devices
