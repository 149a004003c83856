// Finds numbers by what they stand for, which is kept elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tagflow::graph {

// A hash table of numbers that holds no keys: whoever asks says whether a
// number stands for what is looked for. So it is small, made with one
// allocation, and copied as it is. Thread-compatible.
class HashIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t(0);

  HashIndex() = default;
  // With room for that many.
  explicit HashIndex(size_t numbers) { resize(numbers); }

  // A number of that hash for which is_it(number), or kNone.
  template <class IsIt>
  uint32_t find(uint32_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return kNone;
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone) return kNone;
      if (slot.hash == hash && is_it(slot.number)) return slot.number;
    }
  }
  // REQUIRES: what it stands for is not there yet, and number < kNone. The low
  // bits of the hash are good ones.
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

  // At most half of the slots, a power of two, are taken.
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

// The same for numbers that have names: name_of(number) says what each is
// called.
class NameIndex {
 public:
  static constexpr uint32_t kNone = HashIndex::kNone;

  NameIndex() = default;
  explicit NameIndex(size_t names) : index_(names) {}

  // The number of that name, or kNone.
  template <class NameOf>
  uint32_t find(std::string_view name, const NameOf& name_of) const {
    return index_.find(hash_of(name), [&](uint32_t number) {
      return name_of(number) == name;
    });
  }
  // REQUIRES: the name is not there yet, and number < kNone.
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
