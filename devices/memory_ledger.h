// MemoryLedger: counts the bytes that a device allocates, against its limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "devices/memory_stats.h"

namespace tagflow::devices {

// Buffers count in multiples of a granule. Thread-safe.
class MemoryLedger {
 public:
  // In bytes. A limit of 0 means none.
  explicit MemoryLedger(int64_t limit, int64_t granule = 64)
      : limit_(limit), granule_(granule) {}

  // Reserves bytes for a buffer, which counts from now on. Returns the bytes in
  // use then; -1 if that exceeds the limit or an int64_t.
  int64_t reserve(size_t bytes);
  // The buffer was allocated. REQUIRES: `in_use` is from reserve().
  void confirm(int64_t in_use);
  // The buffer was freed, or its allocation failed. REQUIRES: the bytes were
  // reserved.
  void give_back(size_t bytes);
  // Counts bytes that are not a buffer, exactly. False if they do not fit.
  bool add(size_t bytes);
  // Counts them no longer. REQUIRES: they were added.
  void subtract(size_t bytes);

  MemoryStats stats() const;
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t limit() const { return limit_; }
  // The largest in_use since the last call, or since the beginning; resets it.
  // Several callers thus see different parts of the time.
  int64_t take_peak();

 private:
  // The bytes that a buffer counts for; negative if they overflow.
  int64_t counted(size_t bytes) const;
  // Counts `more` bytes. Returns the bytes in use then; -1 if `more` is
  // negative or they do not fit.
  int64_t take(int64_t more);

  const int64_t limit_;
  const int64_t granule_;
  // Every allocation changes this; the other members are mostly read.
  alignas(64) std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> recent_peak_{0};  // see take_peak()
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> live_{0};
};

}  // namespace tagflow::devices
