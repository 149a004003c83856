// Table: a map of keys to values that outlives a step.
#pragma once

#include <atomic>
#include <string>

#include "devices/kernel.h"
#include "devices/state/guarded_state.h"
#include "devices/state/saved_contents.h"
#include "devices/state/table_index.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// The settings from the node that makes a table.
struct TableSpec {
  enum class Kind : uint8_t {
    kFixed,   // HashTable: filled once
    kScalar,  // MutableHashTable
    kTensor,  // MutableHashTableOfTensors
    kDense,   // MutableDenseHashTable: keys may be tensors; two are reserved
  };

  // InvalidArgument that names `table`, and the difference, unless a node with
  // the settings `other` may share it.
  Status check_same(std::string_view table, const TableSpec& other) const;
  std::string describe() const;

  Kind kind = Kind::kFixed;
  DataType key = DataType::kInvalid;
  DataType value = DataType::kInvalid;
  Shape key_shape;
  Shape value_shape;
  // For kDense: keys that mark free slots. The second may be missing.
  Tensor empty_key;
  Tensor deleted_key;
};

// The entries are rows of two tensors, found by an index.
//
// Life cycle: made by the first node of its name, empty; one of kFixed is
// filled by the first initialisation, and not usable before; ended by a reset
// of its container, or with its manager.
class Table final : public GuardedState, public SavedContents {
 public:
  static constexpr std::string_view kKind = "table";

  // `name` is for messages.
  Table(std::string name, TableSpec spec)
      : name_(std::move(name)), spec_(std::move(spec)) {}

  const TableSpec& spec() const { return spec_; }
  // 'table "t" of string -> int64'.
  std::string describe() const override;

  // --- REQUIRES: the lock is held, in any mode. Each checks its arguments.
  int64_t size() const { return size_; }
  bool is_initialized() const {
    return is_filled_ || spec_.kind != TableSpec::Kind::kFixed;
  }
  // Output 0: the values of keys; missing keys get `defaults`: one for all, or
  // one for each key.
  Status find(KernelContext& context, const Tensor& keys,
              const Tensor& defaults) const;
  // Outputs 0 and 1: all keys and values.
  Status export_to(KernelContext& context) const;
  Result<std::vector<Tensor>> save() const override;

  // --- REQUIRES: the lock is held exclusively. A long change is made first,
  // which a cancellation interrupts, and then committed, which takes no time;
  // if it is too late for that, or after an error, it is taken back. So the
  // answer of a step does not wait for a long change.
  // Sets existing keys to the new values. An error changes no entry.
  Status insert(const KernelContext& context, const Tensor& keys,
                const Tensor& values);
  // Ignores missing keys.
  Status remove(const KernelContext& context, const Tensor& keys);
  // Replaces all entries; the old ones exist beside the new ones for a while.
  // An error changes nothing. Reserved keys mark rows that are not entries:
  // TensorFlow exports a MutableDenseHashTable with all of its slots.
  Status import_all(const KernelContext& context, const Tensor& keys,
                    const Tensor& values);
  // Fills one of kFixed. FailedPrecondition if it has been filled, or a key
  // has two values: then it stays empty.
  Status fill(const KernelContext& context, const Tensor& keys,
              const Tensor& values);
  void clear() noexcept override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 private:
  // The number of keys in the tensor.
  Result<int64_t> count_keys(const KernelContext& context,
                             const Tensor& keys) const;
  // The key that has the value of key `at`, if that one is reserved.
  enum class Reserved : uint8_t { kNone, kEmpty, kDeleted };
  Reserved reserved(const Tensor& keys, int64_t at) const;
  // InvalidArgument if a key is reserved.
  Status check_keys(const KernelContext& context, const Tensor& keys,
                    int64_t count) const;
  Result<int64_t> check_entries(const KernelContext& context,
                                const Tensor& keys, const Tensor& values) const;
  // The shape of the values for these keys.
  Shape shape_of_values(const Tensor& keys) const;

  uint32_t hash_of(const Tensor& keys, int64_t at) const;
  bool same_key(const Tensor& a, int64_t a_at, const Tensor& b,
                int64_t b_at) const;
  uint32_t row_of(const Tensor& keys, int64_t at, uint32_t hash) const;
  // Whether the table has entry `at`. REQUIRES: check_entries() accepts them.
  bool has_entry(const Tensor& keys, const Tensor& values, int64_t at) const;
  Status reserve(const KernelContext& context, int64_t rows);
  class Insertion;
  class Removal;
  // After an error there may be some of the entries. REQUIRES: the table is
  // empty, and check_entries() accepts them.
  Status fill_empty(const KernelContext& context, const Tensor& keys,
                    const Tensor& values, int64_t count);

  const std::string name_;
  const TableSpec spec_;
  TableIndex index_;
  Tensor keys_, values_;  // of `capacity_` rows
  MemoryCharge charge_;   // of the index
  int64_t capacity_ = 0;
  int64_t size_ = 0;
  bool is_filled_ = false;
};

}  // namespace tagflow::devices
