// An index from keys to numbers, which does not store the keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tagflow::graph {

// A hash table of numbers that stores no keys: the caller compares a number's
// key with the wanted one. So it is small, needs one allocation, and is copied
// as plain memory. Thread-compatible.
class HashIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t(0);

  HashIndex() = default;
  // Reserves room for that many.
  explicit HashIndex(size_t numbers) { resize(numbers); }

  // A number with that hash for which is_it(number) holds, or kNone.
  template <class IsIt>
  uint32_t find(uint32_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return kNone;
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone) return kNone;
      if (slot.hash == hash && is_it(slot.number)) return slot.number;
    }
  }
  // REQUIRES: its key is not in the index yet, and number < kNone. The low bits
  // of the hash are well distributed.
  void insert(uint32_t hash, uint32_t number) {
    if (2 * (size_ + 1) > slots_.size()) resize(2 * (size_ + 1));
    place({hash, number});
    ++size_;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kNone;
  };

  size_t mask() const { return slots_.size() - 1; }

  void place(const Slot& slot) {
    size_t at = slot.hash & mask();
    while (slots_[at].number != kNone) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  // At most half of the slots, whose number is a power of two, are used.
  void resize(size_t numbers) {
    size_t slots = 16;
    while (slots < 2 * numbers) slots *= 2;
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots));
    for (const Slot& slot : old)
      if (slot.number != kNone) place(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// A HashIndex with names as keys: name_of(number) returns the name.
class NameIndex {
 public:
  static constexpr uint32_t kNone = HashIndex::kNone;

  NameIndex() = default;
  explicit NameIndex(size_t names) : index_(names) {}

  // The number with that name, or kNone.
  template <class NameOf>
  uint32_t find(std::string_view name, const NameOf& name_of) const {
    return index_.find(hash_of(name), [&](uint32_t number) {
      return name_of(number) == name;
    });
  }
  // REQUIRES: the name is not in the index yet, and number < kNone.
  void insert(std::string_view name, uint32_t number) {
    index_.insert(hash_of(name), number);
  }

 private:
  static uint32_t hash_of(std::string_view name) {
    return uint32_t(std::hash<std::string_view>()(name));
  }

  HashIndex index_;
};

}  // namespace tagflow::graph
