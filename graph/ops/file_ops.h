// Private to graph/ops/file*.cpp.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_file_checkpoint_ops(OpRegistry& registry);
void register_file_shard_ops(OpRegistry& registry);

}  // namespace tagflow::graph
