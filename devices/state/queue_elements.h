// QueueElements: the contents of a queue, and the order of their removal.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "devices/philox.h"
#include "graph/memory_charge.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Elements are tuples of `width` tensors. Thread-compatible.
class QueueElements {
 public:
  explicit QueueElements(size_t width) : width_(width) {}
  virtual ~QueueElements() = default;
  QueueElements(const QueueElements&) = delete;
  QueueElements& operator=(const QueueElements&) = delete;

  size_t width() const { return width_; }
  virtual int64_t size() const = 0;
  // Reserves for so many more: pushes do not throw. What the elements take is
  // counted in `memory` before. Returns 0, or the bytes that would exceed its
  // limit: then nothing changes. Throws std::bad_alloc.
  virtual size_t reserve(int64_t more, Allocator& memory) = 0;
  // Takes the tensors of one element. REQUIRES: memory is reserved.
  virtual void push(Tensor* element) noexcept = 0;
  // Moves the next element to `element`. REQUIRES: there is one.
  virtual void pop(Tensor* element) noexcept = 0;
  // Puts the most recently popped element back, of those not put back yet.
  virtual void unpop(Tensor* element) noexcept = 0;
  // Frees unused memory. Nothing can be put back afterwards.
  virtual void trim() noexcept {}
  virtual void clear() noexcept = 0;

 protected:
  MemoryCharge charge_;  // of the places of elements

 private:
  const size_t width_;
};

// First in, first out: a ring that grows and shrinks.
class FifoElements final : public QueueElements {
 public:
  using QueueElements::QueueElements;
  int64_t size() const override { return size_; }
  size_t reserve(int64_t more, Allocator& memory) override;
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override;
  void trim() noexcept override;
  void clear() noexcept override;

 private:
  static constexpr int64_t kMinCapacity = 8;
  Tensor* at(int64_t i) const {
    return ring_.get() + size_t((first_ + i) & (capacity_ - 1)) * width();
  }
  void move_to(std::unique_ptr<Tensor[]> ring, int64_t capacity) noexcept;

  std::unique_ptr<Tensor[]> ring_;
  int64_t capacity_ = 0;  // in elements: a power of two
  int64_t first_ = 0;
  int64_t size_ = 0;
};

// Any element may be the next.
class ShuffledElements final : public QueueElements {
 public:
  ShuffledElements(size_t width, uint64_t seed, uint64_t seed2)
      : QueueElements(width), random_(seed, 0, seed2) {}
  int64_t size() const override { return int64_t(tensors_.size() / width()); }
  size_t reserve(int64_t more, Allocator& memory) override;
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override { push(element); }
  void clear() noexcept override;

 private:
  uint32_t draw();

  std::vector<Tensor> tensors_;
  // Seeded as in TensorFlow, so that its sequences are the same.
  Philox random_;
  Philox::Block numbers_{};
  size_t used_ = 4;  // of numbers_
};

// Elements with the smallest first tensor, an int64 scalar, come first; equal
// ones come in the heap's order, as in TensorFlow.
class PriorityElements final : public QueueElements {
 public:
  using QueueElements::QueueElements;
  int64_t size() const override { return int64_t(heap_.size()); }
  size_t reserve(int64_t more, Allocator& memory) override;
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override { push(element); }
  void clear() noexcept override;

 private:
  struct Entry {
    int64_t priority;
    size_t place;                               // index of its tensors
    bool operator<(const Entry& other) const {  // for std::push_heap
      return priority > other.priority;
    }
  };

  std::vector<Entry> heap_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> free_;  // places
};

}  // namespace tagflow::devices
