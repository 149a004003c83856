#include "net/protocol/clock_offset.h"

namespace tagflow::net {

void ClockOffset::add(uint64_t sent, uint64_t peer, uint64_t received) {
  if (received < sent) return;
  const uint64_t error = (received - sent) / 2;
  if (is_known_) {
    const uint64_t age = received < received_ ? 0 : received - received_;
    if (error > error_ + age / kDrift) return;
  }
  is_known_ = true;
  offset_ = peer - (sent + error);
  error_ = error;
  received_ = received;
}

std::optional<uint64_t> ClockOffset::to_local(uint64_t peer) const {
  if (!is_known_) return std::nullopt;
  return peer - offset_;
}

}  // namespace tagflow::net
