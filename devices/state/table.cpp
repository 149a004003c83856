#include "devices/state/table.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

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

Status Table::insert(const KernelContext& context, const Tensor& keys,
                     const Tensor& values) {
  TAGFLOW_ASSIGN(const int64_t count, check_entries(context, keys, values));
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, count));
  TAGFLOW_RETURN_IF_ERROR(reserve(context, size_ + count));
  return insert_rows(keys, values, count);
}

Status Table::insert_rows(Tensor keys, Tensor values, int64_t count) {
  // The memory of new strings is taken before a row changes.
  const auto bring = [](Tensor& rows, const Tensor& own) -> Status {
    if (rows.dtype() != DataType::kString || own.buffer() == nullptr) return {};
    TAGFLOW_ASSIGN(rows, copy_strings(rows, *own.buffer()->allocator));
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(bring(keys, keys_));
  TAGFLOW_RETURN_IF_ERROR(bring(values, values_));
  for (int64_t i = 0; i < count; ++i)
    if (reserved(keys, i) == Reserved::kNone) insert_row(keys, values, i);
  return {};
}

namespace {

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

void Table::insert_row(Tensor& keys, Tensor& values, int64_t at) {
  const uint32_t hash = hash_of(keys, at);
  uint32_t row = row_of(keys, at, hash);
  const bool is_new = row == TableIndex::kNone;
  if (is_new) row = uint32_t(size_);
  move_row(values, at, values_, row, spec_.value_shape.num_elements());
  if (!is_new) return;
  move_row(keys, at, keys_, row, spec_.key_shape.num_elements());
  index_.insert(hash, row);
  ++size_;
}

Status Table::remove(const KernelContext& context, const Tensor& keys) {
  TAGFLOW_RETURN_IF_ERROR(ended());
  TAGFLOW_ASSIGN(const int64_t count, count_keys(context, keys));
  TAGFLOW_RETURN_IF_ERROR(check_keys(context, keys, count));
  const int64_t key_size = spec_.key_shape.num_elements();
  const int64_t value_size = spec_.value_shape.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t hash = hash_of(keys, i);
    const uint32_t row = row_of(keys, i, hash);
    if (row == TableIndex::kNone) continue;
    index_.erase(hash, row);
    // The last row moves to its place.
    const auto last = uint32_t(--size_);
    if (row == last) continue;
    index_.renumber(hash_of(keys_, last), last, row);
    move_row(keys_, last, keys_, row, key_size);
    move_row(values_, last, values_, row, value_size);
  }
  return {};
}

Status Table::import_all(const KernelContext& context, const Tensor& keys,
                         const Tensor& values) {
  if (spec_.kind == TableSpec::Kind::kFixed) return fill(context, keys, values);
  TAGFLOW_ASSIGN(const int64_t count, check_entries(context, keys, values));
  int64_t entries = 0;
  for (int64_t i = 0; i < count; ++i)
    if (reserved(keys, i) == Reserved::kNone) ++entries;
  Table imported(name_, spec_);
  TAGFLOW_RETURN_IF_ERROR(imported.reserve(context, entries));
  TAGFLOW_RETURN_IF_ERROR(imported.insert_rows(keys, values, count));
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
    for (int64_t i = 0; i < count; ++i)
      if (!has_entry(keys, values, i))
        return error(Code::kFailedPrecondition,
                     "[{}] {} is already initialized", context.node().op(),
                     describe());
    return {};
  }
  Status status = guarded(context.node().op(),
                          [&] { return insert(context, keys, values); });
  // A repeated key gets its last value: if the values differ, that is an error.
  for (int64_t i = 0; status.ok() && size_ < count && i < count; ++i) {
    if (!has_entry(keys, values, i))
      status = error(Code::kFailedPrecondition,
                     "[{}] key {} of {} is there twice, with different values",
                     context.node().op(), text_of(keys, i), describe());
  }
  if (!status.ok()) {
    clear();
    return status;
  }
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

}  // namespace tagflow::devices
