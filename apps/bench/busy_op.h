// An op that takes a given time, for measuring the engine around it.
#pragma once

#include <cstdint>

#include "graph/builder/scope.h"
#include "graph/status.h"

namespace tagflow::apps {

// How the op keeps its thread busy; either way the engine cannot use the thread
// for other work.
enum class Busy : uint8_t {
  kSpins,   // computes; takes longer if interrupted
  kSleeps,  // blocks without a core, so more threads than cores can do it
};

// Registers the op and its kernel, before it is used. Later calls have no
// effect. Thread-safe.
Status register_busy_op();

// Returns x after keeping one thread busy for `nanoseconds`.
graph::Output busy(const graph::Scope& scope, const graph::Input& x,
                   int64_t nanoseconds, Busy how = Busy::kSpins);

// The number of kernels of the op that have finished. Thread-safe.
int64_t busy_kernels_run();

}  // namespace tagflow::apps
