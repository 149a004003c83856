// Examples: ParseExample, ParseExampleV2, ParseSingleExample.
#include "graph/op_registry.h"
#include "graph/ops/parsing_ops.h"
#include "graph/ops/parsing_outputs.h"

namespace tagflow::graph {

namespace {

constexpr char kDenseTypes[] = "Tdense: list({float, int64, string}) >= 0";
constexpr char kSparseTypes[] =
    "sparse_types: list({float, int64, string}) >= 0";
constexpr char kDenseShapes[] = "dense_shapes: list(shape) >= 0";

Status parse_example_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape batch, c.with_rank(0, 1));
  ParsedOutputs outputs(c, batch);
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("sparse_types", "Nsparse"));
  return outputs.dense("Tdense", "dense_shapes", "Ndense");
}

Status parse_example_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_key_vectors(c, 2, 5));
  ParsedOutputs outputs(c, c.input(0));
  TAGFLOW_RETURN_IF_ERROR(outputs.check_batch());
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("sparse_types", "num_sparse"));
  TAGFLOW_RETURN_IF_ERROR(outputs.dense("Tdense", "dense_shapes"));
  return outputs.ragged(ParsedOutputs::Ragged::kExample, "ragged_value_types",
                        "ragged_split_types");
}

Status parse_single_example_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape scalar, c.with_rank(0, 0));
  ParsedOutputs outputs(c, scalar);
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("sparse_types", "num_sparse"));
  return outputs.dense("Tdense", "dense_shapes");
}

}  // namespace

void register_parsing_example_ops(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("ParseExample")
          .inputs({"serialized: string", "names: string",
                   "sparse_keys: Nsparse * string",
                   "dense_keys: Ndense * string", "dense_defaults: Tdense"})
          .outputs({"sparse_indices: Nsparse * int64",
                    "sparse_values: sparse_types",
                    "sparse_shapes: Nsparse * int64", "dense_values: Tdense"})
          .attrs({"Nsparse: int >= 0", "Ndense: int >= 0", kSparseTypes,
                  kDenseTypes, kDenseShapes})
          .shape(parse_example_shape));
  registry.add(
      OpDefBuilder("ParseExampleV2")
          .inputs({"serialized: string", "names: string", "sparse_keys: string",
                   "dense_keys: string", "ragged_keys: string",
                   "dense_defaults: Tdense"})
          .outputs({"sparse_indices: num_sparse * int64",
                    "sparse_values: sparse_types",
                    "sparse_shapes: num_sparse * int64", "dense_values: Tdense",
                    "ragged_values: ragged_value_types",
                    "ragged_row_splits: ragged_split_types"})
          .attrs({kDenseTypes, "num_sparse: int >= 0", kSparseTypes,
                  "ragged_value_types: list({float, int64, string}) >= 0",
                  "ragged_split_types: list({int32, int64}) >= 0",
                  kDenseShapes})
          .shape(parse_example_v2_shape));
  registry.add(
      OpDefBuilder("ParseSingleExample")
          .inputs({"serialized: string", "dense_defaults: Tdense"})
          .outputs({"sparse_indices: num_sparse * int64",
                    "sparse_values: sparse_types",
                    "sparse_shapes: num_sparse * int64",
                    "dense_values: Tdense"})
          .attrs({"num_sparse: int >= 0", "sparse_keys: list(string) >= 0",
                  "dense_keys: list(string) >= 0", kSparseTypes, kDenseTypes,
                  kDenseShapes})
          .shape(parse_single_example_shape));
}

}  // namespace tagflow::graph
