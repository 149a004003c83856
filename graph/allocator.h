// Allocators: they provide the memory of tensors.
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

// Allocates buffers. Thread-safe. It must outlive all of its buffers.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns a buffer with one reference. Plain elements are uninitialised,
  // others are default-constructed. Null if the memory or the limit is
  // exhausted. REQUIRES: count >= 0, and count * dtype_size(dtype) does not
  // overflow.
  virtual Buffer* allocate(DataType dtype, int64_t count) = 0;
  // Called once per buffer, when its last reference goes.
  virtual void deallocate(Buffer* buffer) = 0;
  // Whether the host may read and write the bytes directly.
  virtual bool host_visible() const { return true; }
  // For messages: which memory it is, and how much of it is in use.
  virtual std::string describe() const { return "memory"; }
  // The allocator whose memory the buffers are in; it is another one for a
  // wrapper.
  virtual const Allocator& owner() const { return *this; }
  // Whether a buffer of `other` can be used as if it were allocated here. All
  // memory that the host can access counts as one.
  bool shares_memory(const Allocator& other) const {
    return &owner() == &other.owner() ||
           (host_visible() && other.host_visible());
  }
};

// Ordinary memory of the process. Freed blocks of up to 64 MiB are cached for
// reuse, since loops and train steps allocate the same sizes repeatedly: each
// thread caches 1 MiB of each size, and all threads share a cache of 256 MiB.
Allocator& host_allocator();

// Constructs and destroys elements of strings and handles in host memory; they
// have no effect for plain types. Used by allocators.
void construct_elements(DataType dtype, void* data, int64_t count);
void destroy_elements(DataType dtype, void* data, int64_t count);

}  // namespace tagflow
