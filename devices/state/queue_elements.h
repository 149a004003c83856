// QueueElements: the contents of a queue, and the order of their removal.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "devices/counted_growth.h"
#include "devices/philox.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Elements are tuples of `width` tensors. Thread-compatible.
class QueueElements {
 public:
  explicit QueueElements(size_t width) : QueueElements(width, 0) {}
  virtual ~QueueElements() = default;
  QueueElements(const QueueElements&) = delete;
  QueueElements& operator=(const QueueElements&) = delete;

  size_t width() const { return width_; }
  virtual int64_t size() const = 0;
  // Reserves for so many more: pushes do not throw. If there are too few
  // places, their number at least doubles. Errors as those of grow_counted().
  // Throws std::bad_alloc.
  template <class What>
  Status reserve(const KernelContext& context, int64_t more, const What& what) {
    if (size() + more <= places_) [[likely]]
      return {};
    const auto places = int64_t(
        std::bit_ceil(uint64_t(std::max(size() + more, kFewestPlaces))));
    return grow_counted(context, charge_, size_t(places) * bytes_per_place_,
                        what, [&] {
                          grow(places);
                          places_ = places;
                        });
  }
  // Takes the tensors of one element. REQUIRES: memory is reserved.
  virtual void push(Tensor* element) noexcept = 0;
  // Moves the next element to `element`. REQUIRES: there is one.
  virtual void pop(Tensor* element) noexcept = 0;
  // Puts the most recently popped element back, of those not put back yet.
  virtual void unpop(Tensor* element) noexcept = 0;
  // Frees unused memory. Nothing can be put back afterwards.
  virtual void trim() noexcept {}
  virtual void clear() noexcept = 0;
  // The tensors of all elements: if they are pushed in this order, and the
  // numbers are set, elements come out as they would from here.
  virtual std::vector<Tensor> all() const = 0;
  // What the order of removal depends on beside that.
  virtual std::vector<int64_t> numbers() const { return {}; }
  // False if they are not the numbers of such elements.
  virtual bool set_numbers(std::span<const int64_t> numbers) {
    return numbers.empty();
  }

 protected:
  // Each place takes so many bytes `beside` the tensors of its element.
  QueueElements(size_t width, size_t beside)
      : width_(width), bytes_per_place_(width * sizeof(Tensor) + beside) {}
  // The number of elements that there is memory for.
  int64_t places() const { return places_; }
  // There are fewer places, or none.
  void shrink_to(int64_t places) noexcept {
    charge_.reduce(size_t(places_ - places) * bytes_per_place_);
    places_ = places;
    if (places == 0) charge_.clear();
  }

 private:
  static constexpr int64_t kFewestPlaces = 8;

  // Makes so many places. If it throws, nothing changes.
  virtual void grow(int64_t places) = 0;

  const size_t width_;
  const size_t bytes_per_place_;
  int64_t places_ = 0;   // 0, or a power of two
  MemoryCharge charge_;  // of the places
};

// First in, first out: a ring that grows and shrinks.
class FifoElements final : public QueueElements {
 public:
  using QueueElements::QueueElements;
  int64_t size() const override { return size_; }
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override;
  void trim() noexcept override;
  void clear() noexcept override;
  std::vector<Tensor> all() const override;

 private:
  Tensor* at(int64_t i) const {
    return ring_.get() + size_t((first_ + i) & (places() - 1)) * width();
  }
  void grow(int64_t places) override;
  void move_to(std::unique_ptr<Tensor[]> ring) noexcept;

  std::unique_ptr<Tensor[]> ring_;
  int64_t first_ = 0;
  int64_t size_ = 0;
};

// Any element may be the next.
class ShuffledElements final : public QueueElements {
 public:
  ShuffledElements(size_t width, uint64_t seed, uint64_t seed2)
      : QueueElements(width), random_(seed, 0, seed2) {}
  int64_t size() const override { return int64_t(tensors_.size() / width()); }
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override { push(element); }
  void clear() noexcept override;
  std::vector<Tensor> all() const override { return tensors_; }
  std::vector<int64_t> numbers() const override;
  bool set_numbers(std::span<const int64_t> numbers) override;

 private:
  void grow(int64_t places) override {
    tensors_.reserve(size_t(places) * width());
  }
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
  explicit PriorityElements(size_t width)
      : QueueElements(width, sizeof(Entry) + sizeof(size_t)) {}
  int64_t size() const override { return int64_t(heap_.size()); }
  void push(Tensor* element) noexcept override;
  void pop(Tensor* element) noexcept override;
  void unpop(Tensor* element) noexcept override { push(element); }
  void clear() noexcept override;
  // In the order of the heap, which the same pushes make again.
  std::vector<Tensor> all() const override;

 private:
  struct Entry {
    int64_t priority;
    size_t place;                               // index of its tensors
    bool operator<(const Entry& other) const {  // for std::push_heap
      return priority > other.priority;
    }
  };

  void grow(int64_t places) override;

  std::vector<Entry> heap_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> free_;  // places
};

}  // namespace tagflow::devices
