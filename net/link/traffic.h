// Traffic: what a link has counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tagflow::net {

struct Traffic {
  uint64_t round_trip_ns = 0;  // of the last Ping; 0: none was answered yet
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  uint64_t frames_in = 0;
  uint64_t frames_out = 0;
  uint64_t bytes_waiting = 0;  // until the system takes them
};

// Counts, on the threads of a link, what any thread may read. Thread-safe, but
// one thread at a time receives, and one sends: so a count costs no locked
// instruction.
class TrafficCount {
 public:
  void receive(uint64_t bytes) { add(bytes_in_, bytes); }
  void receive_frames(uint64_t count) { add(frames_in_, count); }
  void send(uint64_t bytes) { add(bytes_out_, bytes); }
  void send_frames(uint64_t count) { add(frames_out_, count); }
  void take_round_trip(uint64_t ns) { round_trip_.store(ns, kRelaxed); }
  Traffic get() const {
    Traffic traffic;
    traffic.round_trip_ns = round_trip_.load(kRelaxed);
    traffic.bytes_in = bytes_in_.load(kRelaxed);
    traffic.bytes_out = bytes_out_.load(kRelaxed);
    traffic.frames_in = frames_in_.load(kRelaxed);
    traffic.frames_out = frames_out_.load(kRelaxed);
    return traffic;
  }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  using Count = std::atomic<uint64_t>;

  static void add(Count& count, uint64_t more) {
    count.store(count.load(kRelaxed) + more, kRelaxed);
  }

  Count round_trip_{0}, bytes_in_{0}, bytes_out_{0}, frames_in_{0},
      frames_out_{0};
};

}  // namespace tagflow::net
