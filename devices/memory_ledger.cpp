#include "devices/memory_ledger.h"

#include <algorithm>
#include <limits>

namespace tagflow::devices {

int64_t MemoryLedger::counted(size_t bytes) const {
  constexpr size_t kMost = size_t(std::numeric_limits<int64_t>::max());
  if (bytes > kMost - size_t(granule_)) return -1;
  return (int64_t(bytes) + granule_ - 1) / granule_ * granule_;
}

int64_t MemoryLedger::take(int64_t more) {
  const int64_t most =
      limit_ > 0 ? limit_ : std::numeric_limits<int64_t>::max();
  int64_t before = in_use_.load(std::memory_order_relaxed);
  do {
    if (more < 0 || more > most - before) return -1;
  } while (!in_use_.compare_exchange_weak(before, before + more,
                                          std::memory_order_relaxed));
  return before + more;
}

int64_t MemoryLedger::reserve(size_t bytes) {
  const int64_t in_use = take(counted(bytes));
  if (in_use >= 0) live_.fetch_add(1, std::memory_order_relaxed);
  return in_use;
}

namespace {

void raise(std::atomic<int64_t>& peak, int64_t to) {
  int64_t before = peak.load(std::memory_order_relaxed);
  while (to > before &&
         !peak.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

void MemoryLedger::confirm(int64_t in_use) {
  raise(recent_peak_, in_use);
  raise(peak_, in_use);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void MemoryLedger::give_back(size_t bytes) {
  in_use_.fetch_sub(counted(bytes), std::memory_order_relaxed);
  live_.fetch_sub(1, std::memory_order_relaxed);
}

bool MemoryLedger::add(size_t bytes) {
  constexpr size_t kMost = size_t(std::numeric_limits<int64_t>::max());
  const int64_t in_use = bytes > kMost ? -1 : take(int64_t(bytes));
  if (in_use < 0) return false;
  raise(recent_peak_, in_use);
  raise(peak_, in_use);
  return true;
}

void MemoryLedger::subtract(size_t bytes) {
  in_use_.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
}

int64_t MemoryLedger::take_peak() {
  const int64_t now = in_use();
  return std::max(recent_peak_.exchange(now, std::memory_order_relaxed), now);
}

MemoryStats MemoryLedger::stats() const {
  MemoryStats stats;
  stats.in_use = in_use_.load(std::memory_order_relaxed);
  // Reserved bytes may not be confirmed yet.
  stats.peak = std::max(peak_.load(std::memory_order_relaxed), stats.in_use);
  stats.limit = limit_;
  stats.count = count_.load(std::memory_order_relaxed);
  stats.live = live_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace tagflow::devices
