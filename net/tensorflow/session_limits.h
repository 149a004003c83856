// How much the clients of a session service may ask for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tagflow::net {

// Of all clients together, unless it says otherwise. Beyond a limit the error
// is ResourceExhausted.
struct SessionLimits {
  size_t sessions = 1000;
  // A session that has done nothing for so long makes room for a new one, if
  // there are too many: its client may be gone.
  std::chrono::seconds idle{3600};
  size_t runs = 10000;  // that are not answered
  // Of feeds of these runs, and of graphs of sessions.
  uint64_t bytes = uint64_t{8} << 30;
  size_t traces = 64;          // of runs that are recorded and not over
  size_t callables = 1000;     // of a session
  size_t partial_runs = 100;   // of a session
  size_t signatures = 1000;    // of a session, prepared: the others wait longer
  size_t preparations = 1000;  // that wait for a thread
};

}  // namespace tagflow::net
