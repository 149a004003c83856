// ServiceFigures: what a master service says of its clients.
#pragma once

#include <cstdint>

namespace tagflow::net {

// Of all clients that are here.
struct ServiceFigures {
  uint64_t clients = 0;
  uint64_t sessions = 0;
  uint64_t signatures = 0;
  // Runs that have begun, and those of them that wait for an event, as an
  // element of a queue, when the service looked last.
  uint64_t runs_begun = 0;
  uint64_t runs_waiting = 0;
  uint64_t runs_queued = 0;  // that wait for their turn
  uint64_t feed_bytes = 0;   // of all these runs
};

}  // namespace tagflow::net
