// Traffic: what the system has counted of a connection.
#pragma once

#include <cstdint>

namespace tagflow::net {

// Links need not count by themselves, so it costs them nothing.
struct Traffic {
  uint64_t round_trip_ns = 0;  // smoothed, as TCP measures it
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// Zeros if the system does not say. Thread-safe.
Traffic traffic_of(int descriptor);

}  // namespace tagflow::net
