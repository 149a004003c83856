// How much memory there is.
#pragma once

#include <cstdint>
#include <string>

namespace tagflow::apps {

// Bytes that the process may still take before the system, or the group of
// processes that it is in (a container's, say), has none left; the largest
// number where the system does not say. An estimate: others take memory, too.
// Thread-safe.
int64_t available_memory();

// The same of a system whose files are below `root`. For tests.
int64_t available_memory_below(const std::string& root);

}  // namespace tagflow::apps
