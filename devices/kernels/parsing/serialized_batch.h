// SerializedBatch: the Examples that one execution of a kernel parses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "devices/kernel.h"
#include "devices/kernels/parsing/key_table.h"
#include "devices/kernels/parsing/rows.h"
#include "devices/kernels/parsing/wire.h"

namespace tagflow::devices {

// Refers to the context and its inputs.
class SerializedBatch {
 public:
  // Of input 0; input `names`, if it is not negative, has names for messages:
  // as many, or none. InvalidArgument for other shapes.
  static Result<SerializedBatch> make(const KernelContext& context, int names);

  const KernelContext& context() const { return context_; }
  // One Example, whose outputs have no dimension for the batch.
  bool is_single() const { return is_single_; }
  int64_t size() const { return int64_t(examples_.size()); }
  std::string_view operator[](int64_t row) const {
    return examples_[size_t(row)];
  }
  // For messages: 'example 3 "name"'.
  std::string describe(int64_t row) const;
  // An InvalidArgument about an Example that cannot be read.
  Status damaged(int64_t row) const;

  // Calls parse(row) with each row, on several threads. Returns the error of
  // the first row that has one. `parse` is safe to call concurrently.
  template <class Parse>
  Status for_each(const Parse& parse) const {
    return for_each_row(context_, size(), row_cost_, parse);
  }

 private:
  SerializedBatch(const KernelContext& context,
                  std::span<const std::string> examples,
                  std::span<const std::string> names, bool is_single);

  const KernelContext& context_;
  std::span<const std::string> examples_;
  std::span<const std::string> names_;
  bool is_single_;
  double row_cost_;  // in nanoseconds
};

// Note [Odd Examples]
// Few programs write an Example by hand, and these may write what protobuf's
// own writers never do. TensorFlow's parser of Examples differs from protobuf
// there: of a list that is packed in several pieces, it takes the first one,
// and drops the values of the rest; it takes the first kind of a feature, not
// the last; it refuses lists of which only a later piece is packed, features
// whose first field is unknown, and entries without a key or a value. If an
// Example is cut between two of its entries, it does not see that the rest is
// missing, and it does not look at an Example at all of which no feature is
// wanted. Here all of these are read as protobuf reads them, and what is cut is
// refused. A context feature without a list is missing, as in an Example, and
// an empty batch needs no defaults; for TensorFlow both are errors of a
// SequenceExample.
//
// Three rules differ from protobuf's. Unknown groups, which were given up
// before these messages existed, and an entry of two values, which protobuf
// merges, are damage, as they are for TensorFlow. And keys need not be UTF-8.
// Damage inside of a feature that nobody wants is not seen, here as there.

// Finds entries of a map that lies in field `container` of a message, and calls
// store(number, value) with those whose keys the table has, until that is
// false: later entries of a key replace earlier ones. An entry without a key
// has the key "". False, too, if the message is damaged.
template <class Store>
bool find_entries(std::string_view message, uint32_t container,
                  const KeyTable& keys, const Store& store) {
  constexpr uint32_t kEntry = 1, kKey = 1, kValue = 2;
  WireReader reader(message);
  while (reader.next()) {
    if (!reader.is_bytes(container)) continue;
    WireReader entries(reader.bytes());
    while (entries.next()) {
      if (!entries.is_bytes(kEntry)) continue;
      WireReader parts(entries.bytes());
      std::string_view key, value;
      bool has_value = false;
      while (parts.next()) {
        if (parts.is_bytes(kKey)) key = parts.bytes();
        if (!parts.is_bytes(kValue)) continue;
        if (std::exchange(has_value, true)) return false;
        value = parts.bytes();
      }
      if (!parts.ok()) return false;
      if (const int number = keys.find(key); number >= 0)
        if (!store(size_t(number), value)) return false;
    }
    if (!entries.ok()) return false;
  }
  return reader.ok();
}

}  // namespace tagflow::devices
