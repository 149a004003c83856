// Finds numbers by name, for those who keep the names elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace tagflow::graph {

// A hash table of numbers that holds no names: whoever asks says, by
// name_of(number), what each is called. So it is small, made with one
// allocation, and copied as it is. Thread-compatible.
class NameIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t(0);

  NameIndex() = default;
  // With room for that many.
  explicit NameIndex(size_t names) { resize(names); }

  // The number of that name, or kNone.
  template <class NameOf>
  uint32_t find(std::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return kNone;
    const uint32_t hash = hash_of(name);
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone) return kNone;
      if (slot.hash == hash && name_of(slot.number) == name) return slot.number;
    }
  }
  // REQUIRES: the name is not there yet, and number < kNone.
  void insert(std::string_view name, uint32_t number) {
    if (2 * (size_ + 1) > slots_.size()) resize(2 * (size_ + 1));
    place({hash_of(name), number});
    ++size_;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kNone;
  };

  static uint32_t hash_of(std::string_view name) {
    return uint32_t(std::hash<std::string_view>()(name));
  }
  size_t mask() const { return slots_.size() - 1; }

  void place(const Slot& slot) {
    size_t at = slot.hash & mask();
    while (slots_[at].number != kNone) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  // At most half of the slots, a power of two, are taken.
  void resize(size_t names) {
    size_t slots = 16;
    while (slots < 2 * names) slots *= 2;
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots));
    for (const Slot& slot : old)
      if (slot.number != kNone) place(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace tagflow::graph
