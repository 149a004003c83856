// Ticks: when an actor asks its machine what is due.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "net/protocol/ids.h"

namespace tagflow::net {

// An actor sends itself a tick with a number after a time. Only the last one
// counts, so an earlier tick can take the place of a later one. Thread-safe:
// no.
class Ticks {
 public:
  // The number of the tick to be sent for that time; nothing if one is on its
  // way that comes no later, or no time is wanted.
  std::optional<uint64_t> plan(Time time) {
    if (time >= at_) return std::nullopt;
    at_ = time;
    return ++number_;
  }
  // Whether the tick counts, which has come.
  bool take(uint64_t number) {
    if (at_ == kNever || number != number_) return false;
    at_ = kNever;
    return true;
  }

 private:
  uint64_t number_ = 0;
  Time at_ = kNever;
};

}  // namespace tagflow::net
