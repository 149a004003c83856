// MemoryCharge: the memory that a container takes beside the buffers of
// tensors.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "graph/allocator.h"
#include "graph/status.h"

namespace tagflow {

// Counts bytes in the memory of an allocator, against its limit, as long as it
// lives: Note [Memory outside of buffers] in graph/allocator.h. Counts nothing
// if the allocator does not. Thread-compatible.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  // Counts as many bytes again. Throws a StatusException if that would exceed
  // the limit.
  MemoryCharge(const MemoryCharge& other);
  MemoryCharge(MemoryCharge&& other) noexcept
      : buffer_(std::exchange(other.buffer_, nullptr)) {}
  MemoryCharge& operator=(MemoryCharge other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~MemoryCharge() { clear(); }

  // Counts `bytes` in the memory of `allocator`, and nothing else from now on.
  // False if that would exceed the limit: then nothing changes. Fewer bytes
  // than before in the same memory always fit.
  bool set(Allocator& allocator, size_t bytes) {
    if (buffer_ == nullptr && !allocator.counts_outside()) [[likely]]
      return true;
    return change(allocator, bytes);
  }
  // Counts so many fewer bytes. REQUIRES: it counts nothing, or at least those.
  void reduce(size_t bytes) noexcept {
    if (buffer_ != nullptr) buffer_->allocator->discharge(*buffer_, bytes);
  }
  // Counts nothing.
  void clear() noexcept;
  // The bytes that are counted.
  size_t bytes() const {
    return buffer_ == nullptr ? 0 : buffer_->outside.load();
  }

 private:
  bool change(Allocator& allocator, size_t bytes);

  Buffer* buffer_ = nullptr;  // of one byte; null if nothing is counted
};

// ResourceExhausted: "out of memory: WHAT needs 80 bytes of MEMORY".
Status out_of_memory(const Allocator& memory, std::string_view what,
                     size_t bytes);

}  // namespace tagflow
