// Why a run has no result: what is dead and by which Switch, who waits for
// whom. Reads the state of a step that is quiet.
#pragma once

#include "actors/executable.h"

namespace tagflow::actors {

// InvalidArgument: fetch `fetch` is dead; names the Switch that killed it, its
// predicate's value, and its tag.
Status explain_dead(const RunContext& context, size_t fetch);

// Deadlock: names the nodes that wait, and what for.
Status explain_deadlock(const Step& step, const RunContext& context);

// The error of a step that was out of time, with the frames that ran and the
// iterations they had come to, and what was to be received.
Status explain_late(const Status& late, const RunContext& context);

}  // namespace tagflow::actors
