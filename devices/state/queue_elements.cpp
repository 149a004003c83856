#include "devices/state/queue_elements.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tagflow::devices {

// --- In order ---------------------------------------------------------------

void FifoElements::grow(int64_t places) {
  move_to(std::make_unique<Tensor[]>(size_t(places) * width()));
}

void FifoElements::move_to(std::unique_ptr<Tensor[]> ring) noexcept {
  Tensor* to = ring.get();
  for (int64_t i = 0; i < size_; ++i, to += width())
    std::move(at(i), at(i) + width(), to);
  ring_ = std::move(ring);
  first_ = 0;
}

void FifoElements::push(Tensor* element) noexcept {
  std::move(element, element + width(), at(size_++));
}

void FifoElements::pop(Tensor* element) noexcept {
  Tensor* const first = at(0);
  std::move(first, first + width(), element);
  first_ = (first_ + 1) & (places() - 1);
  --size_;
}

void FifoElements::trim() noexcept {
  constexpr int64_t kWorthShrinking = 1024, kUnused = 8;
  if (places() <= kWorthShrinking || size_ * kUnused > places()) [[likely]]
    return;
  const int64_t fewer = places() / 4;
  std::unique_ptr<Tensor[]> ring(new (std::nothrow)
                                     Tensor[size_t(fewer) * width()]);
  if (ring == nullptr) return;
  move_to(std::move(ring));
  shrink_to(fewer);
}

void FifoElements::unpop(Tensor* element) noexcept {
  first_ = (first_ + places() - 1) & (places() - 1);
  ++size_;
  std::move(element, element + width(), at(0));
}

void FifoElements::clear() noexcept {
  ring_.reset();
  shrink_to(0);
  first_ = size_ = 0;
}

std::vector<Tensor> FifoElements::all() const {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < size_; ++i)
    tensors.insert(tensors.end(), at(i), at(i) + width());
  return tensors;
}

// --- In any order -----------------------------------------------------------

uint32_t ShuffledElements::draw() {
  if (used_ == numbers_.size()) {
    numbers_ = random_.next();
    used_ = 0;
  }
  return numbers_[used_++];
}

void ShuffledElements::clear() noexcept {
  tensors_ = {};
  shrink_to(0);
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

// The position in the random numbers, and those of the block that is used.
std::vector<int64_t> ShuffledElements::numbers() const {
  std::vector<int64_t> numbers = {
      int64_t(random_.key()), int64_t(random_.counter_low()),
      int64_t(random_.counter_high()), int64_t(used_)};
  numbers.insert(numbers.end(), numbers_.begin(), numbers_.end());
  return numbers;
}

bool ShuffledElements::set_numbers(std::span<const int64_t> numbers) {
  if (numbers.size() != 4 + numbers_.size() || numbers[3] < 0 ||
      size_t(numbers[3]) > numbers_.size())
    return false;
  random_ =
      Philox(uint64_t(numbers[0]), uint64_t(numbers[1]), uint64_t(numbers[2]));
  used_ = size_t(numbers[3]);
  for (size_t i = 0; i < numbers_.size(); ++i)
    numbers_[i] = uint32_t(numbers[4 + i]);
  return true;
}

// --- By priority ------------------------------------------------------------

void PriorityElements::grow(int64_t places) {
  const auto all = size_t(places);
  // `free_` never holds more than the number of all places.
  heap_.reserve(all);
  free_.reserve(all);
  tensors_.resize(all * width());
  for (size_t place = all; place > size_t(this->places()); --place)
    free_.push_back(place - 1);
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

std::vector<Tensor> PriorityElements::all() const {
  std::vector<Tensor> tensors;
  for (const Entry& entry : heap_) {
    const Tensor* const first = tensors_.data() + entry.place * width();
    tensors.insert(tensors.end(), first, first + width());
  }
  return tensors;
}

void PriorityElements::clear() noexcept {
  heap_ = {};
  tensors_ = {};
  free_ = {};
  shrink_to(0);
}

}  // namespace tagflow::devices
