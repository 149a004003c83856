// Memory for the duration of one call.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace tagflow::devices {

// Memory that a call needs beside its arguments, aligned for any element. The
// calling thread keeps up to a mebibyte of it for its next calls.
// Thread-compatible.
class Scratch {
 public:
  // Throws std::bad_alloc. REQUIRES: no other Scratch of the thread lives, as
  // both could have the same memory.
  explicit Scratch(size_t bytes) {
    constexpr size_t kMostKept = 1 << 20;
    Block& block = bytes > kMostKept ? own_ : kept();
    if (block.size < bytes) block = Block(bytes);
    start_ = block.memory.get();
  }
  // Valid as long as this lives. REQUIRES: `offset` is below `bytes`, or 0.
  void* at(size_t offset) const {
    return static_cast<std::byte*>(start_) + offset;
  }
  // Rounds up, so that what follows is aligned, too.
  static size_t rounded(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Block {
    Block() = default;
    explicit Block(size_t bytes)
        : memory(std::aligned_alloc(kAlignment, rounded(bytes))), size(bytes) {
      if (memory == nullptr) throw std::bad_alloc();
    }
    std::unique_ptr<void, Free> memory;
    size_t size = 0;
  };
  static Block& kept() {
    thread_local Block block;
    return block;
  }

  Block own_;
  void* start_ = nullptr;
};

}  // namespace tagflow::devices
