// A recording of a run in other processes: of what its trace knows.
#pragma once

#include <cstddef>

#include "actors/watch/trace.h"
#include "apps/tagflow/stepper/recording.h"

namespace tagflow::apps::stepper {

struct TraceRecording {
  Recording recording;
  size_t omitted = 0;  // steps beyond the limit
};

// The first `limit` steps in the order of their times: arrivals, firings, and
// nodes that are skipped. A trace has no values, so that each is "?", and
// neither edges nor the ends of iterations, so that nothing is ready or waits.
// Instances name their device and its task. REQUIRES: no run is being recorded.
TraceRecording record_trace(const actors::Trace& trace, size_t limit);

}  // namespace tagflow::apps::stepper
