// Traffic: what a link has counted.
#pragma once

#include <atomic>
#include <cstdint>

namespace tagflow::net {

struct Traffic {
  uint64_t round_trip_ns = 0;  // of the last Ping; 0: none was answered yet
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// Counts, on the threads of a link, what any thread may read. Thread-safe.
class TrafficCount {
 public:
  void receive(uint64_t bytes) { in_.fetch_add(bytes, kRelaxed); }
  void send(uint64_t bytes) { out_.fetch_add(bytes, kRelaxed); }
  void take_round_trip(uint64_t ns) { round_trip_.store(ns, kRelaxed); }
  Traffic get() const {
    return {round_trip_.load(kRelaxed), in_.load(kRelaxed),
            out_.load(kRelaxed)};
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  std::atomic<uint64_t> round_trip_{0}, in_{0}, out_{0};
};

}  // namespace tagflow::net
