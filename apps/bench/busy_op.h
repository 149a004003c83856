// An op that takes a given time, for measuring what is around it.
#pragma once

#include <cstdint>

#include "graph/builder/scope.h"
#include "graph/status.h"

namespace tagflow::apps {

// What the op does to its thread meanwhile; either way the engine cannot use it
// for anything else.
enum class Busy : uint8_t {
  kSpins,   // computes; longer where that is interrupted
  kSleeps,  // blocks: needs no core, so that more threads than cores can do so
};

// Registers the op and its kernel, before it is used; again: has no effect.
// Thread-safe.
Status register_busy_op();

// x, after `nanoseconds` of one thread.
graph::Output busy(const graph::Scope& scope, const graph::Input& x,
                   int64_t nanoseconds, Busy how = Busy::kSpins);

// How many of its kernels have come to their end. Thread-safe.
int64_t busy_kernels_run();

}  // namespace tagflow::apps
