// PersistentStack: an immutable stack; a push or a pop gives a new one that
// shares what both have in common.
#pragma once

#include <array>
#include <atomic>

#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Elements lie in chunks, so that a push costs no allocation of its own. A
// stack is the first `count` elements of its chunk, and what lies below that.
//
// Invariants:
//   1. Who raises `used` of a chunk from n to n + 1 alone writes element n, and
//      hands it on only as part of a stack of n + 1 elements.
//   2. No stack reads an element at or above its count: so a chunk is shared
//      by stacks of different heights without locks.
//
// Thread-compatible, as every shared value: only who holds the last reference
// calls push() or pop().
class PersistentStack final : public VariantValue {
 public:
  explicit PersistentStack(DataType dtype) : dtype_(dtype) {}
  PersistentStack(const PersistentStack& other);

  DataType dtype() const { return dtype_; }
  int64_t size() const { return size_; }
  // "PersistentStack[3] of float".
  std::string describe() const override;

  // REQUIRES: value.dtype() == dtype()
  void push(const Tensor& value);
  // REQUIRES: size() > 0
  Tensor pop();

 private:
  static constexpr uint32_t kChunk = 15;
  struct Chunk;
  // The first `count` elements of a chunk; none where it is null.
  struct Part {
    Ref<Chunk> chunk;
    uint32_t count = 0;
  };
  struct Chunk : RefCounted {
    explicit Chunk(Part rest) : below(std::move(rest)) {}
    ~Chunk() override;
    std::array<Tensor, kChunk> elements;
    std::atomic<uint32_t> used{0};
    Part below;
  };

  DataType dtype_;
  int64_t size_ = 0;
  Part top_;
};

}  // namespace tagflow::devices
