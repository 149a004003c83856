// TableIndex: finds rows by their contents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tagflow::devices {

// A hash table of row numbers that holds no keys: the caller compares the rows.
// Linear probing; removal leaves no gap. Thread-compatible.
class TableIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t(0);

  // The row of that hash for which is_it(row), or kNone.
  template <class IsIt>
  uint32_t find(uint32_t hash, const IsIt& is_it) const {
    const size_t at = slot_of(hash, is_it);
    return at == kNowhere ? kNone : slots_[at].row;
  }
  // REQUIRES: no equal row exists yet.
  void insert(uint32_t hash, uint32_t row) {
    reserve(size_ + 1);
    place({hash, row});
    ++size_;
  }
  // Changes a row's number. REQUIRES: it exists.
  void renumber(uint32_t hash, uint32_t row, uint32_t number) {
    slots_[slot_of(hash, [row](uint32_t other) { return other == row; })].row =
        number;
  }
  // REQUIRES: it exists.
  void erase(uint32_t hash, uint32_t row) {
    size_t gap = slot_of(hash, [row](uint32_t other) { return other == row; });
    for (size_t at = next(gap); slots_[at].row != kNone; at = next(at)) {
      // Rows that would also be found at the gap move there.
      const size_t home = slots_[at].hash & mask();
      if (((at - home) & mask()) < ((at - gap) & mask())) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
    --size_;
  }
  // Reserves memory for so many: inserting them throws nothing.
  void reserve(size_t rows) {
    if (2 * rows <= slots_.size()) return;
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_for(rows)));
    for (const Slot& slot : old)
      if (slot.row != kNone) place(slot);
  }
  // The bytes that reserve(rows) would leave it with.
  size_t bytes_for(size_t rows) const { return slots_for(rows) * sizeof(Slot); }
  void clear() {
    slots_ = {};
    size_ = 0;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t row = kNone;
  };
  static constexpr size_t kNowhere = ~size_t(0);

  size_t slots_for(size_t rows) const {
    size_t slots = std::max<size_t>(slots_.size(), 16);
    while (slots < 2 * rows) slots *= 2;
    return slots;
  }
  size_t mask() const { return slots_.size() - 1; }
  size_t next(size_t at) const { return (at + 1) & mask(); }

  template <class IsIt>
  size_t slot_of(uint32_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return kNowhere;
    for (size_t at = hash & mask();; at = next(at)) {
      const Slot& slot = slots_[at];
      if (slot.row == kNone) return kNowhere;
      if (slot.hash == hash && is_it(slot.row)) return at;
    }
  }
  void place(const Slot& slot) {
    size_t at = slot.hash & mask();
    while (slots_[at].row != kNone) at = next(at);
    slots_[at] = slot;
  }

  std::vector<Slot> slots_;  // none, or a power of two; half of them are free
  size_t size_ = 0;
};

}  // namespace tagflow::devices
