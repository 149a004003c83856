// Ops on whole files.
#include "graph/op_registry.h"
#include "graph/ops/file_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

Status file_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return scalar_shape(c);
}

Status matching_files_shape(ShapeContext& c) {
  const PartialShape& pattern = c.input(0);
  if (pattern.has_rank() && pattern.rank() > 1)
    return c.fail(fmt::format("pattern must be a scalar or a vector, not {}",
                              pattern.to_string()));
  c.set_output(0, {PartialShape::kUnknown});
  return {};
}

}  // namespace

void register_file_ops(OpRegistry& registry) {
  register_file_checkpoint_ops(registry);
  register_file_shard_ops(registry);
  registry.add(OpDefBuilder("ReadFile")
                   .input("filename: string")
                   .output("contents: string")
                   .shape(file_shape),
               always_uses_files);
  registry.add(OpDefBuilder("WriteFile")
                   .inputs({"filename: string", "contents: string"})
                   .stateful()
                   .shape(file_shape),
               always_uses_files);
  registry.add(OpDefBuilder("MatchingFiles")
                   .input("pattern: string")
                   .output("filenames: string")
                   .shape(matching_files_shape),
               always_uses_files);
}

}  // namespace tagflow::graph
