// PersistentStack: an immutable stack; a push or a pop gives a new one that
// shares the common part.
#pragma once

#include <array>
#include <atomic>

#include "devices/kernels/containers/variant_arithmetic.h"
#include "devices/saved_tensor.h"
#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Elements are in chunks, so that a push needs no allocation of its own. A
// stack is the first `count` elements of its chunk and all chunks below it.
//
// Invariants:
//   1. Only the thread that raises `used` of a chunk from n to n + 1 writes
//      element n, and passes it on only as part of a stack of n + 1 elements.
//   2. No stack reads an element at or above its count: so a chunk is shared
//      by stacks of different heights without locks.
//   3. A chunk is made either for values of an accelerator's memory, which may
//      be swapped, or not. Each slot holds one of the two kinds.
//
// A stack of gradients of another stack's elements has them at the same
// distance from the top. Elements below its end are zeros, and so are invalid
// elements: zeros take no memory. Such stacks are added element by element,
// from the top.
//
// Thread-compatible, as every shared value: non-const methods are only called
// with the last reference.
class PersistentStack final : public GradientValue {
 public:
  explicit PersistentStack(DataType dtype) : dtype_(dtype) {}
  PersistentStack(const PersistentStack& other);

  DataType dtype() const { return dtype_; }
  int64_t size() const { return size_; }
  // "PersistentStack[3] of float".
  std::string describe() const override;
  // Copies share all elements.
  int64_t copy_size() const override { return 0; }
  Ref<GradientValue> copy() const override;
  Status accumulate(VariantSum& sum, const GradientValue& term) override;

  // REQUIRES: value.dtype() == dtype(), or the value is not valid. If the value
  // may be swapped, observers receive `step`. What the stack takes beside the
  // value counts in `memory`; throws a StatusException if that would exceed its
  // limit.
  void push(const Tensor& value, uint64_t step = 0,
            Allocator& memory = host_allocator());
  // The value may be in any memory. REQUIRES: size() > 0
  Tensor pop();
  // The value that pop() would return, if it may be swapped; else null.
  Ref<SavedTensor> next_saved() const;

 private:
  static constexpr uint32_t kChunk = 15;
  struct Chunk;
  // The first `count` elements of a chunk; none if it is null.
  struct Part {
    Ref<Chunk> chunk;
    uint32_t count = 0;
  };
  struct Chunk : RefCounted {
    using Saved = std::array<SavedOwner, kChunk>;
    Chunk(Part rest, bool swaps, MemoryCharge chunk_charge);
    ~Chunk() override;
    // Moves the element out of its slot.
    Tensor take(uint32_t at);
    std::array<Tensor, kChunk> elements;
    const std::unique_ptr<Saved> saved;  // null: holds no swappable values
    const MemoryCharge charge;
    std::atomic<uint32_t> used{0};
    Part below;
  };

  DataType dtype_;
  int64_t size_ = 0;
  Part top_;
};

}  // namespace tagflow::devices
