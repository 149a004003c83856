#include "devices/state/queue_elements.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tagflow::devices {

// --- In order ---------------------------------------------------------------

size_t FifoElements::reserve(int64_t more, Allocator& memory) {
  if (size_ + more <= capacity_) return 0;
  int64_t capacity = std::max(capacity_, kMinCapacity);
  while (capacity < size_ + more) capacity *= 2;
  const size_t places = size_t(capacity) * width();
  // The old places exist beside the new ones for a while.
  MemoryCharge charge;
  const size_t bytes = places * sizeof(Tensor);
  if (!charge.set(memory, bytes)) return bytes;
  move_to(std::make_unique<Tensor[]>(places), capacity);
  charge_ = std::move(charge);
  return 0;
}

void FifoElements::move_to(std::unique_ptr<Tensor[]> ring,
                           int64_t capacity) noexcept {
  Tensor* to = ring.get();
  for (int64_t i = 0; i < size_; ++i, to += width())
    std::move(at(i), at(i) + width(), to);
  ring_ = std::move(ring);
  capacity_ = capacity;
  first_ = 0;
}

void FifoElements::push(Tensor* element) noexcept {
  std::move(element, element + width(), at(size_++));
}

void FifoElements::pop(Tensor* element) noexcept {
  Tensor* const first = at(0);
  std::move(first, first + width(), element);
  first_ = (first_ + 1) & (capacity_ - 1);
  --size_;
}

void FifoElements::trim() noexcept {
  constexpr int64_t kWorthShrinking = 1024, kUnused = 8;
  if (capacity_ <= kWorthShrinking || size_ * kUnused > capacity_) [[likely]]
    return;
  const int64_t capacity = capacity_ / 4;
  std::unique_ptr<Tensor[]> ring(new (std::nothrow)
                                     Tensor[size_t(capacity) * width()]);
  if (ring == nullptr) return;
  charge_.reduce(size_t(capacity_ - capacity) * width() * sizeof(Tensor));
  move_to(std::move(ring), capacity);
}

void FifoElements::unpop(Tensor* element) noexcept {
  first_ = (first_ + capacity_ - 1) & (capacity_ - 1);
  ++size_;
  std::move(element, element + width(), at(0));
}

void FifoElements::clear() noexcept {
  ring_.reset();
  charge_.clear();
  capacity_ = first_ = size_ = 0;
}

// --- In any order -----------------------------------------------------------

uint32_t ShuffledElements::draw() {
  if (used_ == numbers_.size()) {
    numbers_ = random_.next();
    used_ = 0;
  }
  return numbers_[used_++];
}

size_t ShuffledElements::reserve(int64_t more, Allocator& memory) {
  const size_t wanted = tensors_.size() + size_t(more) * width();
  if (wanted <= tensors_.capacity()) return 0;
  const size_t places = std::max(wanted, 2 * tensors_.capacity());
  // The old places exist beside the new ones for a while.
  MemoryCharge charge;
  const size_t bytes = places * sizeof(Tensor);
  if (!charge.set(memory, bytes)) return bytes;
  tensors_.reserve(places);
  charge_ = std::move(charge);
  return 0;
}

void ShuffledElements::clear() noexcept {
  tensors_ = {};
  charge_.clear();
}

void ShuffledElements::push(Tensor* element) noexcept {
  for (size_t i = 0; i < width(); ++i)
    tensors_.push_back(std::move(element[i]));
}

void ShuffledElements::pop(Tensor* element) noexcept {
  Tensor* const picked =
      tensors_.data() + size_t(draw() % uint64_t(size())) * width();
  Tensor* const last = tensors_.data() + tensors_.size() - width();
  std::move(picked, picked + width(), element);
  if (picked != last) std::move(last, last + width(), picked);
  tensors_.resize(tensors_.size() - width());
}

// --- By priority ------------------------------------------------------------

size_t PriorityElements::reserve(int64_t more, Allocator& memory) {
  const size_t wanted = heap_.size() + size_t(more);
  const size_t places = tensors_.size() / width();
  if (wanted <= places) return 0;
  // `free_` never holds more than the number of all places.
  const size_t all = std::max(wanted, 2 * places);
  constexpr size_t kBeside = sizeof(Entry) + sizeof(size_t);
  MemoryCharge charge;
  const size_t bytes = all * (width() * sizeof(Tensor) + kBeside);
  if (!charge.set(memory, bytes)) return bytes;
  heap_.reserve(all);
  free_.reserve(all);
  tensors_.resize(all * width());
  for (size_t place = all; place > places; --place) free_.push_back(place - 1);
  charge_ = std::move(charge);
  return 0;
}

void PriorityElements::push(Tensor* element) noexcept {
  const size_t place = free_.back();
  free_.pop_back();
  const int64_t priority = element[0].scalar_value<int64_t>();
  std::move(element, element + width(), tensors_.data() + place * width());
  heap_.push_back({priority, place});
  std::push_heap(heap_.begin(), heap_.end());
}

void PriorityElements::pop(Tensor* element) noexcept {
  std::pop_heap(heap_.begin(), heap_.end());
  const size_t place = heap_.back().place;
  heap_.pop_back();
  Tensor* const tensors = tensors_.data() + place * width();
  std::move(tensors, tensors + width(), element);
  free_.push_back(place);
}

void PriorityElements::clear() noexcept {
  heap_ = {};
  tensors_ = {};
  free_ = {};
  charge_.clear();
}

}  // namespace tagflow::devices
