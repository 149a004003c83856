// What the system says of this process.
#pragma once

#include <cstdint>

#include "graph/status.h"

namespace tagflow::apps {

// Of all functions: Unavailable where /proc does not say. Thread-safe.

Result<int64_t> peak_resident_bytes();
Result<int64_t> resident_bytes();
Result<int64_t> thread_count();
// Voluntary and involuntary, of all threads that there are at the moment, since
// each began.
Result<int64_t> context_switches();

// Seconds of processors that all threads have had. Thread-safe.
double cpu_seconds();
// Bytes of the heap that are in use: by the count of the C library, of all its
// arenas, with what it mapped. Thread-safe.
int64_t heap_bytes();
// Gives free memory of the heap back to the system, so that what is resident is
// what is used. Thread-safe.
void trim_heap();

}  // namespace tagflow::apps
