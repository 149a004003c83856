// Resource usage of this process.
#pragma once

#include <cstdint>

#include "graph/status.h"

namespace tagflow::apps {

// All return NotFound if /proc lacks the figure. Thread-safe.

Result<int64_t> peak_resident_bytes();
Result<int64_t> resident_bytes();
Result<int64_t> thread_count();
// Voluntary and involuntary context switches of all current threads, each since
// its start.
Result<int64_t> context_switches();

// CPU seconds of all threads. Thread-safe.
double cpu_seconds();
// Bytes of the heap in use, as counted by the C library: all arenas and mapped
// blocks. Thread-safe.
int64_t heap_bytes();
// Returns free memory of the heap to the system, so that resident memory is
// what is used. Thread-safe.
void trim_heap();

}  // namespace tagflow::apps
