// Allocators: they provide the memory of tensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "graph/dtype.h"

namespace tagflow {

class Allocator;

// Note [Memory outside of buffers]
// A limit of the host's memory counts buffers, and also what lies outside of
// them: the bytes of strings, and the places of elements in lists, stacks and
// queues. It is *charged* to a buffer, and given back with the buffer:
//
//   - The bytes of strings are charged to the buffer with the strings. A kernel
//     that can make many times its inputs charges them before they are taken
//     (StringWriter in devices/string_writer.h); all others are counted when
//     they return (devices/outside_memory.h).
//   - What a container takes is charged to a tiny buffer that the container
//     holds, a MemoryCharge (graph/memory_charge.h): before a stack, a queue or
//     the like grows, and for a value of a variant when the kernel that made or
//     changed it returns.
//
// Without a limit nothing is counted, and an allocator says so without a
// virtual call. An accelerator's limit is for its own memory, where none of
// this lies.

// A reference-counted block of one device's memory that holds the elements of
// one or more tensors. Freed through its allocator with the last reference.
struct Buffer {
  std::atomic<uint32_t> refs{1};
  DataType dtype = DataType::kInvalid;
  uint8_t size_class = 0;  // the allocator's own
  // Whether all that the elements keep outside of the block has been charged.
  // Only used by a thread that has all references.
  bool is_settled = false;
  int64_t count = 0;     // elements; those of non-plain types are constructed
  size_t bytes = 0;      // count * dtype_size(dtype)
  void* data = nullptr;  // aligned to 64 bytes
  Allocator* allocator = nullptr;
  std::atomic<size_t> outside{0};  // bytes that are charged to it
};

// Allocates buffers. Thread-safe. It must outlive all of its buffers.
class Allocator {
 public:
  Allocator() = default;
  virtual ~Allocator() = default;
  // Returns a buffer with one reference. Plain elements are uninitialised,
  // others are default-constructed. Null if the memory or the limit is
  // exhausted. REQUIRES: count >= 0, and count * dtype_size(dtype) does not
  // overflow.
  virtual Buffer* allocate(DataType dtype, int64_t count) = 0;
  // Called once per buffer, when its last reference goes. What is charged to it
  // is given back.
  virtual void deallocate(Buffer* buffer) = 0;
  // Whether it counts memory outside of buffers: see the note above.
  bool counts_outside() const { return counts_outside_; }
  // Charges so many more bytes to the buffer. False if that would exceed the
  // limit. REQUIRES: the buffer is this allocator's.
  bool charge(Buffer& buffer, size_t bytes) {
    if (!counts_outside_) return true;
    if (!take_outside(bytes)) return false;
    buffer.outside.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  // Charges so many fewer. REQUIRES: they were charged.
  void discharge(Buffer& buffer, size_t bytes) {
    if (!counts_outside_ || bytes == 0) return;
    buffer.outside.fetch_sub(bytes, std::memory_order_relaxed);
    give_back_outside(bytes);
  }
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

 protected:
  explicit Allocator(bool counts_outside) : counts_outside_(counts_outside) {}

 private:
  // For an allocator that counts: false if the limit would be exceeded.
  virtual bool take_outside(size_t) { return true; }
  virtual void give_back_outside(size_t) {}

  const bool counts_outside_ = false;
};

// Ordinary memory of the process. Freed blocks of up to 1 GiB are cached for
// reuse, since loops and train steps allocate the same sizes repeatedly: each
// thread caches 1 MiB of each size, and all threads share a cache. It has
// 256 MiB, or twice the bytes that were in use at a time in the recent past, if
// that is more, but at most an eighth of the machine's memory then. It is
// emptied before an allocation fails.
Allocator& host_allocator();

// Constructs and destroys elements of strings and handles in host memory; they
// have no effect for plain types. Used by allocators.
void construct_elements(DataType dtype, void* data, int64_t count);
void destroy_elements(DataType dtype, void* data, int64_t count);

}  // namespace tagflow
