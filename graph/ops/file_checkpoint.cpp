// Ops that save tensors to files and restore them.
#include <algorithm>
#include <charconv>

#include "graph/op_registry.h"
#include "graph/ops/file_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

// Checks the ranks of inputs, from the first one on.
Status check_ranks(const ShapeContext& c, std::initializer_list<int> ranks) {
  int i = 0;
  for (const int rank : ranks)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i++, rank).status());
  return {};
}

// Checks that a vector input of known length has one element for each tensor.
Status check_length(const ShapeContext& c, int input, int tensors) {
  const PartialShape& shape = c.input(input);
  if (!shape.has_rank() || !shape.dim_known(0) || shape.dim(0) == tensors)
    return {};
  return c.fail(fmt::format("input {} has {} elements for {} tensors", input,
                            shape.dim(0), tensors));
}

Status save_v2_shape(ShapeContext& c) {
  constexpr int kFirstTensor = 3;
  const int tensors = c.num_inputs() - kFirstTensor;
  TAGFLOW_RETURN_IF_ERROR(check_ranks(c, {0, 1, 1}));
  TAGFLOW_RETURN_IF_ERROR(check_length(c, 1, tensors));
  return check_length(c, 2, tensors);
}

// The shape at the end of "4 6 0,2:-"; of unknown rank if the text is
// malformed, which the kernel reports.
PartialShape restored_shape(std::string_view spec) {
  if (spec.empty()) return {};
  PartialShape shape = PartialShape::scalar();
  const size_t space = spec.rfind(' ');
  if (space == spec.npos) return {};
  std::string_view dims = spec.substr(0, space + 1);
  std::string_view extents = spec.substr(space + 1);
  const auto take = [](std::string_view& text, char separator) {
    const size_t at = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return part;
  };
  const auto number = [](std::string_view text) -> int64_t {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    return code == std::errc() && stop == end && value >= 0
               ? value
               : PartialShape::kUnknown;
  };
  while (!dims.empty()) {
    const int64_t dim = number(take(dims, ' '));
    std::string_view extent = take(extents, ':');
    if (extent != "-") take(extent, ',');
    shape.add_dim(extent == "-" ? dim : number(extent));
    if (shape.rank() > kMaxRank) return {};
  }
  return shape;
}

Status restore_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_ranks(c, {0, 1, 1}));
  TAGFLOW_RETURN_IF_ERROR(check_length(c, 1, c.num_outputs()));
  TAGFLOW_RETURN_IF_ERROR(check_length(c, 2, c.num_outputs()));
  const Tensor* specs = c.constant(2);
  if (specs == nullptr) return unknown_shape(c);
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, restored_shape(specs->data<std::string>()[i]));
  return {};
}

Status merge_checkpoints_shape(ShapeContext& c) {
  return check_ranks(c, {1, 0});
}

Status sharded_name_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return scalar_shape(c);
}

}  // namespace

void register_file_checkpoint_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("SaveV2")
                   .inputs({"prefix: string", "tensor_names: string",
                            "shape_and_slices: string", "tensors: dtypes"})
                   .attr("dtypes: list(type) >= 1")
                   .stateful()
                   .shape(save_v2_shape),
               always_uses_files);
  registry.add(OpDefBuilder("RestoreV2")
                   .inputs({"prefix: string", "tensor_names: string",
                            "shape_and_slices: string"})
                   .output("tensors: dtypes")
                   .attr("dtypes: list(type) >= 1")
                   .stateful()
                   .shape(restore_v2_shape),
               always_uses_files);
  registry.add(
      OpDefBuilder("MergeV2Checkpoints")
          .inputs({"checkpoint_prefixes: string", "destination_prefix: string"})
          .attrs({"delete_old_dirs: bool = true",
                  "allow_missing_files: bool = false"})
          .stateful()
          .shape(merge_checkpoints_shape),
      always_uses_files);
  registry.add(
      OpDefBuilder("ShardedFilename")
          .inputs({"basename: string", "shard: int32", "num_shards: int32"})
          .output("filename: string")
          .shape(sharded_name_shape));
  registry.add(OpDefBuilder("ShardedFilespec")
                   .inputs({"basename: string", "num_shards: int32"})
                   .output("filename: string")
                   .shape(sharded_name_shape));
  // Ops of the obsolete format V1: graphs with them can be loaded, and run
  // unless they are needed.
  registry.add(
      OpDefBuilder("Save")
          .inputs({"filename: string", "tensor_names: string", "data: T"})
          .attr("T: list(type) >= 1")
          .stateful()
          .shape(no_output_shape),
      always_uses_files);
  registry.add(OpDefBuilder("SaveSlices")
                   .inputs({"filename: string", "tensor_names: string",
                            "shapes_and_slices: string", "data: T"})
                   .attr("T: list(type) >= 1")
                   .stateful()
                   .shape(no_output_shape),
               always_uses_files);
  registry.add(OpDefBuilder("Restore")
                   .inputs({"file_pattern: string", "tensor_name: string"})
                   .output("tensor: dt")
                   .attrs({"dt: type", "preferred_shard: int = -1"})
                   .stateful()
                   .shape(unknown_shape),
               always_uses_files);
  registry.add(OpDefBuilder("RestoreSlice")
                   .inputs({"file_pattern: string", "tensor_name: string",
                            "shape_and_slice: string"})
                   .output("tensor: dt")
                   .attrs({"dt: type", "preferred_shard: int = -1"})
                   .stateful()
                   .shape(unknown_shape),
               always_uses_files);
}

}  // namespace tagflow::graph
