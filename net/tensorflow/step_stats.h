// What a run did and what it was cut into, as TensorFlow's clients read it.
#pragma once

#include <chrono>
#include <string>

#include "actors/plan/distribute.h"
#include "actors/watch/trace.h"
#include "graph/status.h"

namespace tensorflow {
class RunMetadata;
}

namespace tagflow::net {

// Adds each firing of a node, and each kernel and copy of an accelerator, to
// the statistics of its device. Nodes that a pass made a part of others, or
// computed beforehand, did not fire. `began` is the time at which the trace was
// made. REQUIRES: the run is over. Thread-safe.
// `home` is the device of the answers, which always has statistics.
void write_step_stats(const actors::Trace& trace, const std::string& home,
                      std::chrono::system_clock::time_point began,
                      tensorflow::RunMetadata& metadata);

// Adds the graph of each device. Unimplemented if no message can hold one of
// them. Thread-safe.
Status write_partitions(const actors::Distribution& distribution,
                        tensorflow::RunMetadata& metadata);

}  // namespace tagflow::net
