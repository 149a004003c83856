// Not in TensorFlow: the state of a process beside its variables, as snapshots
// take and restore it, by nodes of their own (actors/checkpoint/task_state.h).
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

void register_variable_checkpoint_ops(OpRegistry& registry) {
  // The keys of queues and the like: kind, container, name, and why its
  // contents cannot be saved, or nothing; and contents that are still to be
  // restored: all strings, and the number of those of each.
  registry.add(OpDefBuilder("_ListState")
                   .outputs({"keys: string", "saved: string", "sizes: int64"})
                   .stateful()
                   .shape(unknown_shape));
  const auto with_key = [](OpDefBuilder op) {
    return op.attrs({"kind: string", "resource_container: string",
                     "resource_name: string"});
  };
  registry.add(with_key(OpDefBuilder("_StateHandle"))
                   .output("resource: resource")
                   .stateful()
                   .shape(scalar_shape));
  // The contents; or why they cannot be saved.
  for (const char* name : {"_SaveActor", "_SaveTable", "_SaveObject"})
    registry.add(with_key(OpDefBuilder(name))
                     .input("resource: resource")
                     .outputs({"saved: string", "why_not: string"})
                     .stateful()
                     .shape(unknown_shape));
  registry.add(OpDefBuilder("_RestoreState")
                   .input("saved: string")
                   .stateful()
                   .shape(no_output_shape));
  // In how many runs random ops took part, by the names of their nodes.
  registry.add(OpDefBuilder("_RunCounts")
                   .outputs({"nodes: string", "runs: int64"})
                   .stateful()
                   .shape(unknown_shape));
  registry.add(OpDefBuilder("_RestoreRunCounts")
                   .inputs({"nodes: string", "runs: int64"})
                   .stateful()
                   .shape(no_output_shape));
}

}  // namespace tagflow::graph
