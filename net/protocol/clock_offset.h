// ClockOffset: how far the clock of a peer is ahead of that of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace tagflow::net {

// Note [Clock offsets]
// A Pong has the time at which its Ping was sent, and that of the peer. The
// peer has read its clock between the Ping and the arrival of the Pong: if it
// was in the middle, the offset is known, and in any case it is wrong by half
// of the round trip at most. So the Pong with the shortest round trip says
// most, and later ones replace it if they are as good. Since clocks drift, what
// a Pong says becomes worse with time.
//
// Times are in nanoseconds. They may be any numbers, also made up by the peer.
// Thread-compatible.
class ClockOffset {
 public:
  // A Pong came, whose Ping was sent at that time.
  void add(uint64_t sent, uint64_t peer, uint64_t received);
  // The time of this process at that time of the peer. None before a Pong.
  std::optional<uint64_t> to_local(uint64_t peer) const;

 private:
  // Two quartz clocks drift by less than a nanosecond in so many.
  static constexpr uint64_t kDrift = 10'000;

  bool is_known_ = false;
  uint64_t offset_ = 0;  // modulo 2^64
  uint64_t error_ = 0;   // at most, when it was received
  uint64_t received_ = 0;
};

}  // namespace tagflow::net
