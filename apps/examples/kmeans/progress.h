// An op that shows the progress of the loop, from inside the loop.
#pragma once

#include <cstdint>

#include "graph/builder/scope.h"
#include "graph/status.h"

namespace tagflow::kmeans {

// How the op writes to stderr.
enum class ProgressStyle : uint8_t {
  kNone,
  kLines,  // one for each trip
  kBar,    // one line, redrawn
};

// Registers the op and kernel "KMeansProgress", as a program adds its own ops.
// Call it once, before any graph is built. A second call returns AlreadyExists.
Status register_progress_op(ProgressStyle style);

// Writes a line and returns `trips` (int64). Since it is in the loop's data
// flow, it runs once for each trip, in order. `changed` is int64, `inertia`
// float.
graph::Output progress(const graph::Scope& scope, const graph::Output& trips,
                       const graph::Output& changed,
                       const graph::Output& inertia);

// Ends the line of a bar.
void finish_progress(ProgressStyle style);

}  // namespace tagflow::kmeans
