// The amount of available memory.
#pragma once

#include <cstdint>
#include <string>

namespace tagflow::apps {

// Bytes that the process can still allocate before the system, or its control
// group (a container's, say), runs out of memory; the largest int64 if that
// is unknown. An estimate: other processes allocate memory, too. Thread-safe.
int64_t available_memory();

// As available_memory(), for a system whose files are below `root`. For tests.
int64_t available_memory_below(const std::string& root);

}  // namespace tagflow::apps
