// An op that takes a given time, for measuring what is around it.
#pragma once

#include "graph/builder/scope.h"
#include "graph/status.h"

namespace tagflow::apps {

// Registers the op and its kernel. To be called once, before it is used.
Status register_busy_op();

// x, after `nanoseconds` of one thread; longer where that is interrupted.
graph::Output busy(const graph::Scope& scope, const graph::Input& x,
                   int64_t nanoseconds);

}  // namespace tagflow::apps
