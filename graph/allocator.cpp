#include "graph/allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "graph/handle.h"

namespace tagflow {
namespace {

// Sanitizers must see every allocation and deallocation.
#if defined(TAGFLOW_SANITIZES_ADDRESS) || defined(TAGFLOW_SANITIZES_THREAD)
constexpr bool kCacheBlocks = false;
#else
constexpr bool kCacheBlocks = true;
#endif

constexpr size_t kHeader = 64;  // the Buffer, in front of its data
static_assert(sizeof(Buffer) <= kHeader);

// Note [Size classes]
// Block sizes are powers of two from 128 bytes (header included) to 1 KiB, and
// four sizes per power of two from there to 1 GiB: so a tensor whose size is a
// power of two, which the header makes a little larger, wastes a quarter and
// not half. A thread caches free blocks of up to 1 MiB, at most kCachedBytes of
// a class. Other blocks go to the depot, which all threads share, since often
// one thread allocates what others free. A train step, or the run of a batch,
// frees all of its activations at its end: to allocate them from the system
// again costs a page fault for each 4 KiB, which can be half of the time. So
// the depot may keep as much as was in use at a time before.
//
// Blocks of more than 1 MiB are mappings of their own, which leave no gaps when
// they go. If there is none of a class, a free one of up to twice the size
// serves: a batch of 15 rows uses the blocks of one of 16.
constexpr int kSmallestLog = 7, kFineLog = 10, kLargestLog = 30;
constexpr int kSteps = 4;  // of each power of two from kFineLog on
constexpr int kFirstFine = kFineLog - kSmallestLog + 1;
constexpr int kClasses = kFirstFine + kSteps * (kLargestLog - kFineLog);
constexpr uint8_t kUncached = 0xff;
static_assert(kClasses < kUncached);
constexpr size_t kCachedBytes = size_t(1) << 20;
constexpr size_t kMaxCachedBlocks = 256;
constexpr size_t kDepotBytes = size_t(1) << 28;
constexpr int kLargerClasses = kSteps;  // up to twice the size

// The smallest class with at least so many bytes. REQUIRES: it exists.
uint8_t class_of(size_t bytes) {
  const int log = std::max(kSmallestLog, int(std::bit_width(bytes - 1)));
  if (log <= kFineLog) return uint8_t(log - kSmallestLog);
  const size_t step = (bytes - 1) >> (log - 3) & (kSteps - 1);
  return uint8_t(kFirstFine + kSteps * (log - 1 - kFineLog) + int(step));
}

size_t block_bytes(uint8_t size_class) {
  if (size_class < kFirstFine) return size_t(1) << (size_class + kSmallestLog);
  const int fine = size_class - kFirstFine;
  const int log = kFineLog + fine / kSteps;
  return size_t(kSteps + fine % kSteps + 1) << (log - 2);
}

bool is_mapped(uint8_t size_class) {
  return block_bytes(size_class) > kCachedBytes;
}

// A block from the system, or null.
void* make_block(uint8_t size_class) {
  const size_t bytes = block_bytes(size_class);
  if (!is_mapped(size_class)) return std::aligned_alloc(64, bytes);
  void* const block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void free_block(uint8_t size_class, void* block) {
  if (is_mapped(size_class))
    ::munmap(block, block_bytes(size_class));
  else
    std::free(block);
}

// A stack of free blocks, each of which holds the link to the next: freeing a
// block, as destructors do, must not need memory.
class FreeBlocks {
 public:
  size_t size() const { return size_; }
  void push(uint8_t size_class, void* block) {
    top_ = new (block) Link{top_, size_class};
    ++size_;
  }
  // Null if there is none.
  void* pop() {
    if (top_ == nullptr) return nullptr;
    --size_;
    return std::exchange(top_, top_->next);
  }
  // Gives all blocks back to the system.
  void release() {
    while (top_ != nullptr) {
      const uint8_t size_class = top_->size_class;
      free_block(size_class, pop());
    }
  }

 private:
  struct Link {
    Link* next;
    uint8_t size_class;
  };
  Link* top_ = nullptr;
  size_t size_ = 0;
};

// Free blocks of all threads. If they are too many, the least recently used
// classes are freed. Thread-safe.
class Depot {
 public:
  void put(uint8_t size_class, void* block) {
    FreeBlocks surplus;  // freed after the lock is released
    {
      const std::lock_guard lock(mutex_);
      const size_t bytes = block_bytes(size_class);
      bytes_ += bytes;
      // The child of a fork() has blocks that its own depot never counted.
      if (is_mapped(size_class)) in_use_ -= std::min(in_use_, bytes);
      free_[size_class].push(size_class, block);
      const size_t most = most_bytes();
      while (bytes_ > most) {
        const uint8_t oldest = longest_unused();
        bytes_ -= block_bytes(oldest);
        surplus.push(oldest, free_[oldest].pop());
      }
    }
    surplus.release();
  }
  // Null if there is none; otherwise size_class becomes that of the block.
  void* take(uint8_t& size_class) {
    const std::lock_guard lock(mutex_);
    last_use_[size_class] = ++uses_;
    if (uses_ % kUsesOfAnEra == 0)
      earlier_ = std::exchange(most_in_use_, in_use_);
    const int last =
        std::min(size_class + (is_mapped(size_class) ? kLargerClasses : 0),
                 kClasses - 1);
    for (int i = size_class; i <= last; ++i)
      if (void* const block = free_[size_t(i)].pop()) {
        size_class = uint8_t(i);
        bytes_ -= block_bytes(size_class);
        count(size_class);
        return block;
      }
    return nullptr;
  }
  // A block from the system is in use. REQUIRES: its class is_mapped
  void on_made(uint8_t size_class) {
    const std::lock_guard lock(mutex_);
    count(size_class);
  }
  // Gives all free blocks back to the system.
  void release() {
    std::array<FreeBlocks, kClasses> all;
    {
      const std::lock_guard lock(mutex_);
      std::swap(all, free_);
      bytes_ = 0;
    }
    for (FreeBlocks& blocks : all) blocks.release();
  }

 private:
  static constexpr uint64_t kUsesOfAnEra = 1 << 14;

  void count(uint8_t size_class) {
    if (!is_mapped(size_class)) return;
    in_use_ += block_bytes(size_class);
    most_in_use_ = std::max(most_in_use_, in_use_);
  }
  // Twice as much as was in use at a time, in this era or the one before, since
  // a run does not use all of its sizes at a time; but no large part of the
  // machine's memory.
  size_t most_bytes() const {
    static const size_t machine =
        size_t(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
        size_t(std::max(::sysconf(_SC_PAGESIZE), 0L));
    return std::max(kDepotBytes, std::min(2 * std::max(earlier_, most_in_use_),
                                          machine / 8));
  }
  // The least recently used nonempty class. REQUIRES: it exists, and the mutex
  // is held.
  uint8_t longest_unused() const {
    uint8_t oldest = kUncached;
    for (uint8_t i = 0; i < kClasses; ++i)
      if (free_[i].size() > 0 &&
          (oldest == kUncached || last_use_[i] < last_use_[oldest]))
        oldest = i;
    return oldest;
  }

  std::mutex mutex_;
  size_t bytes_ = 0;
  std::array<FreeBlocks, kClasses> free_;
  uint64_t uses_ = 0;
  std::array<uint64_t, kClasses> last_use_{};  // value of `uses_` at that time
  // Bytes of mapped blocks: now, the most of this era, and of the last one.
  size_t in_use_ = 0, most_in_use_ = 0, earlier_ = 0;
};

// The depot of the process; outlives all tensors. In the child of a fork()
// other threads are gone, possibly while they changed the depot: the child
// starts with an empty one.
Depot& depot() {
  alignas(Depot) static std::byte memory[sizeof(Depot)];
  static Depot* const the_depot = [] {
    auto* made = new (memory) Depot;
    pthread_atfork(nullptr, nullptr, [] { new (memory) Depot; });
    return made;
  }();
  return *the_depot;
}

// Free blocks of one thread. After the thread's end (thread_local objects may
// still release tensors then), blocks are returned to the system directly.
struct BlockCache {
  std::array<FreeBlocks, kClasses> free;
  ~BlockCache();
};
thread_local bool cache_gone = false;
thread_local BlockCache cache;

BlockCache::~BlockCache() {
  cache_gone = true;
  for (FreeBlocks& blocks : free) blocks.release();
}

class HostAllocator : public Allocator {
 public:
  Buffer* allocate(DataType dtype, int64_t count) override {
    const size_t bytes = size_t(count) * dtype_size(dtype);
    const size_t total = bytes + kHeader;
    if (total < bytes) return nullptr;
    uint8_t size_class = kUncached;
    void* block = take_block(total, size_class);
    if (block == nullptr) return nullptr;
    auto* buffer = new (block) Buffer;
    buffer->dtype = dtype;
    buffer->size_class = size_class;
    buffer->count = count;
    buffer->bytes = bytes;
    buffer->data = static_cast<char*>(block) + kHeader;
    buffer->allocator = this;
    construct_elements(dtype, buffer->data, count);
    return buffer;
  }

  void deallocate(Buffer* buffer) override {
    destroy_elements(buffer->dtype, buffer->data, buffer->count);
    const uint8_t size_class = buffer->size_class;
    buffer->~Buffer();
    if (size_class == kUncached) return std::free(buffer);
    if (!cache_gone) {
      FreeBlocks& blocks = cache.free[size_class];
      if (blocks.size() < kMaxCachedBlocks &&
          (blocks.size() + 1) * block_bytes(size_class) <= kCachedBytes) {
        blocks.push(size_class, buffer);
        return;
      }
    } else if (!is_mapped(size_class)) {
      return std::free(buffer);
    }
    depot().put(size_class, buffer);
  }
  std::string describe() const override { return "the host's memory"; }

 private:
  static void* take_block(size_t total, uint8_t& size_class) {
    if (!kCacheBlocks || total > size_t(1) << kLargestLog) {
      const size_t rounded = (total + 63) / 64 * 64;
      return rounded < total ? nullptr : std::aligned_alloc(64, rounded);
    }
    size_class = class_of(total);
    if (!cache_gone)
      if (void* block = cache.free[size_class].pop()) return block;
    if (!cache_gone || is_mapped(size_class))
      if (void* block = depot().take(size_class)) return block;
    void* block = make_block(size_class);
    if (block == nullptr) {
      depot().release();
      block = make_block(size_class);
    }
    if (block != nullptr && is_mapped(size_class)) depot().on_made(size_class);
    return block;
  }
};

}  // namespace

void construct_elements(DataType dtype, void* data, int64_t count) {
  switch (dtype) {
    case DataType::kString:
      std::uninitialized_default_construct_n(static_cast<std::string*>(data),
                                             count);
      break;
    case DataType::kResource:
      std::uninitialized_default_construct_n(static_cast<ResourceHandle*>(data),
                                             count);
      break;
    case DataType::kVariant:
      std::uninitialized_default_construct_n(static_cast<Variant*>(data),
                                             count);
      break;
    default:
      break;
  }
}

void destroy_elements(DataType dtype, void* data, int64_t count) {
  switch (dtype) {
    case DataType::kString:
      std::destroy_n(static_cast<std::string*>(data), count);
      break;
    case DataType::kResource:
      std::destroy_n(static_cast<ResourceHandle*>(data), count);
      break;
    case DataType::kVariant:
      std::destroy_n(static_cast<Variant*>(data), count);
      break;
    default:
      break;
  }
}

Allocator& host_allocator() {
  static HostAllocator* allocator = new HostAllocator;  // outlives all tensors
  return *allocator;
}

}  // namespace tagflow
