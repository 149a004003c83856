// MemoryLedger: counts the bytes that a device gives out, against its limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "devices/memory_stats.h"

namespace tagflow::devices {

// Buffers count in multiples of a granule. Thread-safe.
class MemoryLedger {
 public:
  // In bytes. A limit of 0: none.
  explicit MemoryLedger(int64_t limit, int64_t granule = 64)
      : limit_(limit), granule_(granule) {}

  // Sets bytes aside for a buffer, which counts from now on, and says how many
  // are in use then; -1 where that would be beyond the limit or any memory.
  int64_t reserve(size_t bytes);
  // The buffer could be had. REQUIRES: what reserve() said.
  void confirm(int64_t in_use);
  // Counts the buffer out again, or could not get it. REQUIRES: the bytes were
  // reserved.
  void give_back(size_t bytes);

  MemoryStats stats() const;
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t limit() const { return limit_; }
  // The largest in_use since the last call, or since the beginning; from here
  // on, another one is found. Who else calls it has a part of the time each.
  int64_t take_peak();

 private:
  // What a buffer counts for; negative where that is more than any memory.
  int64_t counted(size_t bytes) const;

  const int64_t limit_;
  const int64_t granule_;
  // What every allocation changes, apart from what all others only read.
  alignas(64) std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> recent_peak_{0};  // as take_peak() says
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> live_{0};
};

}  // namespace tagflow::devices
