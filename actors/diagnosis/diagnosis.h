// Explains why a run has no result: which tokens are dead and which Switch
// killed them, and which nodes wait for which. Reads the state of a quiet step.
#pragma once

#include <string>
#include <vector>

#include "actors/runtime/run_context.h"

namespace tagflow::actors {

// InvalidArgument: fetch `fetch`, of the given name, is dead; names the Switch
// that killed it, in any partition, with its predicate's value and its tag.
Status explain_dead(const RunContext& context, size_t fetch,
                    const std::string& name);

// Deadlock: names the nodes that wait, what they wait for, and the missing
// fetches; with the partitions if there are several. A token that another
// partition has not sent is reported once, with the node there that delays it.
Status explain_deadlock(const RunContext& context,
                        const std::vector<std::string>& missing_fetches);

// The error of a step that was stopped, as by its time-out, with the kernels
// that had not answered, the nodes that wait for another partition, the frames
// that ran, and how far they had come. If it is a Deadlock, of which the part
// of a step is told, with what explain_deadlock() names instead. The message
// may be empty, for what it says of itself.
Status explain_stop(const Status& stop, const RunContext& context,
                    const std::vector<std::string>& missing_fetches);

// At most so many lines, each of which says what a node of a step at rest waits
// for, as those of explain_deadlock().
std::vector<std::string> list_waits(const RunContext& context, size_t most);

}  // namespace tagflow::actors
