// SequenceExamples: ParseSequenceExample, ParseSequenceExampleV2,
// ParseSingleSequenceExample.
#include "graph/op_registry.h"
#include "graph/ops/parsing_ops.h"
#include "graph/ops/parsing_outputs.h"

namespace tagflow::graph {

namespace {

Status sequence_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape batch, c.with_rank(0, 1));
  ParsedOutputs outputs(c, batch);
  TAGFLOW_RETURN_IF_ERROR(
      outputs.sparse("context_sparse_types", "Ncontext_sparse"));
  TAGFLOW_RETURN_IF_ERROR(outputs.dense(
      "Tcontext_dense", "context_dense_shapes", "Ncontext_dense"));
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("feature_list_sparse_types",
                                         "Nfeature_list_sparse", true));
  return outputs.dense_lists("feature_list_dense_types",
                             "feature_list_dense_shapes",
                             "Nfeature_list_dense");
}

Status sequence_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_key_vectors(c, 2, 9));
  ParsedOutputs outputs(c, c.input(0));
  TAGFLOW_RETURN_IF_ERROR(outputs.check_batch());
  TAGFLOW_RETURN_IF_ERROR(
      outputs.sparse("context_sparse_types", "Ncontext_sparse"));
  TAGFLOW_RETURN_IF_ERROR(
      outputs.dense("Tcontext_dense", "context_dense_shapes"));
  TAGFLOW_RETURN_IF_ERROR(outputs.ragged(ParsedOutputs::Ragged::kContext,
                                         "context_ragged_value_types",
                                         "context_ragged_split_types"));
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("feature_list_sparse_types",
                                         "Nfeature_list_sparse", true));
  TAGFLOW_RETURN_IF_ERROR(outputs.dense_lists("feature_list_dense_types",
                                              "feature_list_dense_shapes",
                                              "Nfeature_list_dense"));
  return outputs.ragged(ParsedOutputs::Ragged::kList,
                        "feature_list_ragged_value_types",
                        "feature_list_ragged_split_types");
}

Status single_sequence_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape scalar, c.with_rank(0, 0));
  ParsedOutputs outputs(c, scalar);
  TAGFLOW_RETURN_IF_ERROR(
      outputs.sparse("context_sparse_types", "Ncontext_sparse"));
  TAGFLOW_RETURN_IF_ERROR(outputs.dense(
      "Tcontext_dense", "context_dense_shapes", "Ncontext_dense"));
  TAGFLOW_RETURN_IF_ERROR(outputs.sparse("feature_list_sparse_types",
                                         "Nfeature_list_sparse", true));
  return outputs.dense_lists("feature_list_dense_types",
                             "feature_list_dense_shapes", "Nfeature_list_dense",
                             false);
}

// Attributes that all have, with the types of the features.
OpDefBuilder& add_context(OpDefBuilder& op) {
  return op.attrs({"Ncontext_sparse: int >= 0 = 0",
                   "context_sparse_types: list({float, int64, string}) >= 0 = "
                   "[]",
                   "Tcontext_dense: list({float, int64, string}) >= 0 = []",
                   "context_dense_shapes: list(shape) >= 0 = []",
                   "Nfeature_list_sparse: int >= 0 = 0",
                   "Nfeature_list_dense: int >= 0 = 0",
                   "feature_list_dense_types: list({float, int64, string}) >= "
                   "0 = []",
                   "feature_list_sparse_types: list({float, int64, string}) >= "
                   "0 = []",
                   "feature_list_dense_shapes: list(shape) >= 0 = []"});
}

constexpr char kContextIndices[] =
    "context_sparse_indices: Ncontext_sparse * int64";
constexpr char kContextValues[] = "context_sparse_values: context_sparse_types";
constexpr char kContextShapes[] =
    "context_sparse_shapes: Ncontext_sparse * int64";
constexpr char kContextDense[] = "context_dense_values: Tcontext_dense";
constexpr char kListIndices[] =
    "feature_list_sparse_indices: Nfeature_list_sparse * int64";
constexpr char kListValues[] =
    "feature_list_sparse_values: feature_list_sparse_types";
constexpr char kListShapes[] =
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64";
constexpr char kListDense[] =
    "feature_list_dense_values: feature_list_dense_types";
constexpr char kListLengths[] =
    "feature_list_dense_lengths: Nfeature_list_dense * int64";

}  // namespace

void register_parsing_sequence_ops(OpRegistry& registry) {
  OpDefBuilder first("ParseSequenceExample");
  first
      .inputs({"serialized: string", "debug_name: string",
               "context_dense_defaults: Tcontext_dense"})
      .outputs({kContextIndices, kContextValues, kContextShapes, kContextDense,
                kListIndices, kListValues, kListShapes, kListDense,
                kListLengths})
      .attrs({"feature_list_dense_missing_assumed_empty: list(string) >= 0",
              "context_sparse_keys: list(string) >= 0",
              "context_dense_keys: list(string) >= 0",
              "feature_list_sparse_keys: list(string) >= 0",
              "feature_list_dense_keys: list(string) >= 0",
              "Ncontext_dense: int >= 0 = 0"})
      .shape(sequence_shape);
  registry.add(add_context(first));

  OpDefBuilder second("ParseSequenceExampleV2");
  second
      .inputs({"serialized: string", "debug_name: string",
               "context_sparse_keys: string", "context_dense_keys: string",
               "context_ragged_keys: string",
               "feature_list_sparse_keys: string",
               "feature_list_dense_keys: string",
               "feature_list_ragged_keys: string",
               "feature_list_dense_missing_assumed_empty: bool",
               "context_dense_defaults: Tcontext_dense"})
      .outputs(
          {kContextIndices, kContextValues, kContextShapes, kContextDense,
           "context_ragged_values: context_ragged_value_types",
           "context_ragged_row_splits: context_ragged_split_types",
           kListIndices, kListValues, kListShapes, kListDense, kListLengths,
           "feature_list_ragged_values: feature_list_ragged_value_types",
           "feature_list_ragged_outer_splits: feature_list_ragged_split_types",
           "feature_list_ragged_inner_splits: "
           "feature_list_ragged_split_types"})
      .attrs({"context_ragged_value_types: list({float, int64, string}) >= 0 = "
              "[]",
              "context_ragged_split_types: list({int32, int64}) >= 0 = []",
              "feature_list_ragged_value_types: list({float, int64, string}) "
              ">= 0 = []",
              "feature_list_ragged_split_types: list({int32, int64}) >= 0 = "
              "[]"})
      .shape(sequence_v2_shape);
  registry.add(add_context(second));

  OpDefBuilder single("ParseSingleSequenceExample");
  single
      .inputs({"serialized: string",
               "feature_list_dense_missing_assumed_empty: string",
               "context_sparse_keys: Ncontext_sparse * string",
               "context_dense_keys: Ncontext_dense * string",
               "feature_list_sparse_keys: Nfeature_list_sparse * string",
               "feature_list_dense_keys: Nfeature_list_dense * string",
               "context_dense_defaults: Tcontext_dense", "debug_name: string"})
      .outputs({kContextIndices, kContextValues, kContextShapes, kContextDense,
                kListIndices, kListValues, kListShapes, kListDense})
      .attr("Ncontext_dense: int >= 0 = 0")
      .shape(single_sequence_shape);
  registry.add(add_context(single));
}

}  // namespace tagflow::graph
