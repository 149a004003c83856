// Not in TensorFlow: how a process writes its part of a checkpoint, and reads
// it, by nodes of the snapshot (actors/checkpoint/worker_shards.h).
#include "graph/op_registry.h"
#include "graph/ops/file_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_file_shard_ops(OpRegistry& registry) {
  // Holds the values until the process writes them, or holds others.
  registry.add(OpDefBuilder("_HoldShard")
                   .inputs({"save: int64", "values: T"})
                   .attr("T: list(type) >= 0")
                   .stateful()
                   .shape(no_output_shape));
  // Writes what is held for that save; `keys` are the tensors' names in the
  // checkpoint. The outputs are an index of the shard alone, and the size and a
  // checksum of its file.
  registry.add(
      OpDefBuilder("_WriteShard")
          .inputs({"save: int64", "path: string", "keys: string", "sync: bool"})
          .outputs({"index: string", "size: int64", "checksum: int64"})
          .stateful()
          .shape(unknown_shape),
      always_uses_files);
  // Reads tensors of a published bundle; `index` is one of those alone.
  registry.add(OpDefBuilder("_ReadShards")
                   .inputs({"prefix: string", "keys: string", "index: string"})
                   .outputs({"values: T"})
                   .attr("T: list(type) >= 1")
                   .stateful()
                   .shape(unknown_shape),
               always_uses_files);
}

}  // namespace tagflow::graph
