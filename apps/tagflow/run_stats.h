// What `tagflow run --stats` prints.
#pragma once

#include <string>
#include <vector>

#include "actors/watch/step_stats.h"

namespace tagflow::apps {

// Two tables, the longest times first: the ops, and the nodes. A node of a
// loop, or of several runs, has one line. `has_memory` is whether the bytes are
// known. `dropped` is how many events the trace had no room for.
std::string format_stats(const std::vector<actors::NodeStats>& nodes,
                         bool has_memory, uint64_t dropped);

}  // namespace tagflow::apps
