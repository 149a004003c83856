// What the system's TCP takes over loopback, without any of our code.
#pragma once

#include <cstddef>

#include "graph/status.h"

namespace tagflow::apps {

// Both between two threads of this process, by blocking calls on a connection
// of its own. Return Unavailable if the system gives none. Thread-safe.

// Seconds of one round trip: 64 bytes there, and 64 back. The mean of `count`.
Result<double> tcp_round_trip_seconds(int count);
// Seconds of one stream of so many bytes, between two buffers that are in use
// already, until the last byte has been read.
Result<double> tcp_stream_seconds(size_t bytes);

}  // namespace tagflow::apps
