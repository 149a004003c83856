// Where the bytes of tensors come from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "graph/dtype.h"

namespace tagflow {

class Allocator;

// A reference-counted block of one device's memory that holds the elements of
// one or more tensors. Freed through its allocator with the last reference.
struct Buffer {
  std::atomic<uint32_t> refs{1};
  DataType dtype = DataType::kInvalid;
  uint8_t size_class = 0;  // the allocator's own
  int64_t count = 0;       // elements; those of non-plain types are constructed
  size_t bytes = 0;        // count * dtype_size(dtype)
  void* data = nullptr;    // aligned to 64 bytes
  Allocator* allocator = nullptr;
};

// Hands out buffers. Thread-safe. Outlives every buffer it gave.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // A buffer with one reference, its plain elements uninitialised and others
  // default-constructed; null where memory or the limit is exhausted.
  // REQUIRES: count >= 0, and count * dtype_size(dtype) does not overflow.
  virtual Buffer* allocate(DataType dtype, int64_t count) = 0;
  // Called once per buffer, when its last reference goes.
  virtual void deallocate(Buffer* buffer) = 0;
  // Whether the host may read and write the bytes directly.
  virtual bool host_visible() const { return true; }
  // For messages: whose memory it is, and how much of it is in use.
  virtual std::string describe() const { return "memory"; }
  // The allocator that the buffers say they are of.
  virtual const Allocator& owner() const { return *this; }
  // Whether the bytes of a buffer of `other` may serve as if from here: any
  // two that the host can see are one memory.
  bool shares_memory(const Allocator& other) const {
    return &owner() == &other.owner() ||
           (host_visible() && other.host_visible());
  }
};

// Ordinary memory of the process. Blocks of up to 64 MiB are kept for the next
// that asks, since loops and train steps allocate the same sizes again and
// again: 1 MiB of each size by a thread, and 256 MiB in all for any thread.
Allocator& host_allocator();

// Constructs and destroys elements of strings and handles in host memory; no
// effect for plain types. For allocators.
void construct_elements(DataType dtype, void* data, int64_t count);
void destroy_elements(DataType dtype, void* data, int64_t count);

}  // namespace tagflow
