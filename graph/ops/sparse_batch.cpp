// Batches of sparse tensors: their forms as strings and variants, and maps that
// keep them under numbers.
#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/sparse_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

constexpr int64_t kTensors = 3;  // of a sparse tensor

Status check_sparse(const ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  return c.with_rank(2, 1).status();
}

Status serialized_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_sparse(c));
  c.set_output(0, {kTensors});
  return {};
}

Status serialized_rows_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_sparse(c));
  c.set_output(0, {kUnknown, kTensors});
  return {};
}

Status number_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_sparse(c));
  c.set_output(0, PartialShape::scalar());
  return {};
}

Status numbers_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_sparse(c));
  c.set_output(0, {kUnknown});
  return {};
}

void set_batch(ShapeContext& c) {
  c.set_output(0, {kUnknown, kUnknown});
  c.set_output(1, {kUnknown});
  c.set_output(2, {kUnknown});
}

Status deserialized_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape input, c.with_rank_at_least(0, 1));
  if (input.has_rank() && input.dim_known(input.rank() - 1) &&
      input.dim(input.rank() - 1) != kTensors)
    return c.fail(fmt::format("the last dimension must be 3, the shape is {}",
                              input.to_string()));
  set_batch(c);
  return {};
}

Status deserialized_rows_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  return deserialized_shape(c);
}

Status taken_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  set_batch(c);
  return {};
}

}  // namespace

void register_sparse_batch_ops(OpRegistry& registry) {
  const OpDefBuilder::Texts sparse = {
      "sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"};
  const OpDefBuilder::Texts batch = {
      "sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"};
  const OpDefBuilder::Texts name = {"container: string = ''",
                                    "shared_name: string = ''"};
  for (const bool is_many : {false, true})
    registry.add(
        OpDefBuilder(is_many ? "SerializeManySparse" : "SerializeSparse")
            .inputs(sparse)
            .output("serialized_sparse: out_type")
            .attrs({"T: type", "out_type: {string, variant} = string"})
            .shape(is_many ? serialized_rows_shape : serialized_shape));
  registry.add(
      OpDefBuilder("DeserializeSparse")
          .input("serialized_sparse: Tserialized")
          .outputs(batch)
          .attrs({"dtype: type", "Tserialized: {string, variant} = string"})
          .shape(deserialized_shape));
  registry.add(OpDefBuilder("DeserializeManySparse")
                   .input("serialized_sparse: string")
                   .outputs(batch)
                   .attr("dtype: type")
                   .shape(deserialized_rows_shape));
  registry.add(OpDefBuilder("AddSparseToTensorsMap")
                   .inputs(sparse)
                   .output("sparse_handle: int64")
                   .attr("T: type")
                   .attrs(name)
                   .stateful()
                   .shape(number_shape));
  registry.add(OpDefBuilder("AddManySparseToTensorsMap")
                   .inputs(sparse)
                   .output("sparse_handles: int64")
                   .attr("T: type")
                   .attrs(name)
                   .stateful()
                   .shape(numbers_shape));
  registry.add(OpDefBuilder("TakeManySparseFromTensorsMap")
                   .input("sparse_handles: int64")
                   .outputs(batch)
                   .attr("dtype: type")
                   .attrs(name)
                   .stateful()
                   .shape(taken_shape));
}

}  // namespace tagflow::graph
