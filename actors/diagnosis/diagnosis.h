// Why a run has no result: what is dead and by which Switch, who waits for
// whom. Reads the state of a step that is quiet.
#pragma once

#include <string>
#include <vector>

#include "actors/runtime/run_context.h"

namespace tagflow::actors {

// InvalidArgument: fetch `fetch`, of the given name, is dead; names the Switch
// that killed it, in whichever partition, its predicate's value, and its tag.
Status explain_dead(const RunContext& context, size_t fetch,
                    const std::string& name);

// Deadlock: names the nodes that wait and what for, with the partitions where
// there are several, and the fetches that have not come. What another partition
// owes is told once, with the node there that holds it up.
Status explain_deadlock(const RunContext& context,
                        const std::vector<std::string>& missing_fetches);

// The error of a step that was out of time, with the kernels that had not
// answered, who waits for another partition, the frames that ran, and how far
// they had come.
Status explain_late(const Status& late, const RunContext& context);

}  // namespace tagflow::actors
