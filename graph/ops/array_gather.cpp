// Gather, GatherNd, ScatterNd, TensorScatter*, ScatterNdNonAliasingAdd.
#include "graph/ops/array_gather.h"

#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status gather_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape params, c.with_rank_at_least(0, 1));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  c.set_output(0, concatenate(c.input(1), sub_shape(params, 1, params.rank())));
  return {};
}

// params[:axis] + indices[batch_dims:] + params[axis + 1:].
Status gather_v2_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(int64_t batch_dims, c.attr<int64_t>("batch_dims"));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  if (indices.has_rank()) {
    if (batch_dims < -indices.rank() || batch_dims > indices.rank())
      return c.fail(fmt::format("batch_dims {} is outside the indices {}",
                                batch_dims, indices.to_string()));
    if (batch_dims < 0) batch_dims += indices.rank();
  }
  if (!params.has_rank() || !indices.has_rank()) return unknown_shape(c);
  const auto axis = constant_index(c, 2);
  if (!axis) {
    c.set_output(0, PartialShape::of_rank(params.rank() + indices.rank() - 1 -
                                          int(batch_dims)));
    return {};
  }
  TAGFLOW_ASSIGN(const int at, shape_axis(c, *axis, params.rank()));
  if (batch_dims > at)
    return c.fail(
        fmt::format("batch_dims {} is over the axis {}", batch_dims, at));
  const int batch = int(batch_dims);
  auto merged = sub_shape(params, 0, batch).merge(sub_shape(indices, 0, batch));
  if (!merged.ok())
    return c.fail(
        fmt::format("params {} and indices {} differ in the first "
                    "{} dimensions",
                    params.to_string(), indices.to_string(), batch));
  c.set_output(
      0, concatenate(
             concatenate(concatenate(*merged, sub_shape(params, batch, at)),
                         sub_shape(indices, batch, indices.rank())),
             sub_shape(params, at + 1, params.rank())));
  return {};
}

// The number of dimensions of params that each index selects; -1 if unknown.
// REQUIRES: indices of rank >= 1.
int64_t index_depth(const PartialShape& indices) {
  return indices.dim(indices.rank() - 1);
}

Status gather_nd_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, gathered_slices(c, c.input(0)));
  c.set_output(0, std::move(shape));
  return {};
}

Status scatter_nd_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  TAGFLOW_ASSIGN(PartialShape output, c.constant_as_shape(2));
  // The kernel rejects updates of an empty output.
  const int64_t count = output.has_rank() ? output.num_elements() : -1;
  if (count != 0)
    TAGFLOW_RETURN_IF_ERROR(
        check_slice_updates(c, output, c.input(0), c.input(1)));
  c.set_output(0, std::move(output));
  return {};
}

Status tensor_scatter_shape(ShapeContext& c) {
  const PartialShape& tensor = c.input(0);
  const int64_t count = tensor.has_rank() ? tensor.num_elements() : -1;
  if (count != 0)
    TAGFLOW_RETURN_IF_ERROR(
        check_slice_updates(c, tensor, c.input(1), c.input(2)));
  return unchanged_shape(c);
}

}  // namespace

Result<PartialShape> gathered_slices(const ShapeContext& c,
                                     const PartialShape& params) {
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank_at_least(1, 1));
  if (!params.has_rank() || !c.input(1).has_rank()) return PartialShape();
  const int64_t depth = index_depth(indices);
  if (depth < 0) return PartialShape();
  if (depth > params.rank())
    return c.fail(fmt::format("indices {} are too deep for params {}",
                              indices.to_string(), params.to_string()));
  return concatenate(sub_shape(indices, 0, indices.rank() - 1),
                     sub_shape(params, int(depth), params.rank()));
}

Status check_slice_updates(const ShapeContext& c, const PartialShape& output,
                           const PartialShape& indices,
                           const PartialShape& updates) {
  if (!output.has_rank() || !indices.has_rank() || !updates.has_rank())
    return {};
  if (indices.rank() < 1) return c.fail("indices must be at least a vector");
  const int64_t depth = index_depth(indices);
  if (depth < 0) return {};
  if (depth > output.rank())
    return c.fail(fmt::format("indices {} are too deep for the shape {}",
                              indices.to_string(), output.to_string()));
  const PartialShape wanted =
      concatenate(sub_shape(indices, 0, indices.rank() - 1),
                  sub_shape(output, int(depth), output.rank()));
  if (!wanted.compatible(updates))
    return c.fail(fmt::format("updates {} should be {}", updates.to_string(),
                              wanted.to_string()));
  return {};
}

void register_array_gather_ops(OpRegistry& registry) {
  // If a variable is given by reference, they only read its rows.
  registry.add(
      OpDefBuilder("GatherV2")
          .inputs({"params: Tparams", "indices: Tindices", "axis: Taxis"})
          .output("output: Tparams")
          .attrs({"batch_dims: int = 0", "Tparams: type",
                  "Tindices: {int16, int32, int64}", "Taxis: {int32, int64}"})
          .takes_reference(0)
          .shape(gather_v2_shape)
          .work(Work::kPick));
  registry.add(OpDefBuilder("Gather")
                   .inputs({"params: Tparams", "indices: Tindices"})
                   .output("output: Tparams")
                   .attrs({"validate_indices: bool = true", "Tparams: type",
                           "Tindices: {int32, int64}"})
                   .takes_reference(0)
                   .shape(gather_shape)
                   .work(Work::kPick));
  registry.add(OpDefBuilder("GatherNd")
                   .inputs({"params: Tparams", "indices: Tindices"})
                   .output("output: Tparams")
                   .attrs({"Tparams: type", "Tindices: {int16, int32, int64}",
                           "bad_indices_policy: string = ''"})
                   .takes_reference(0)
                   .shape(gather_nd_shape)
                   .work(Work::kPick));
  registry.add(
      OpDefBuilder("ScatterNd")
          .inputs({"indices: Tindices", "updates: T", "shape: Tindices"})
          .output("output: T")
          .attrs({"T: type", "Tindices: {int16, int32, int64}",
                  "bad_indices_policy: string = ''"})
          .shape(scatter_nd_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("TensorScatterUpdate")
                   .inputs({"tensor: T", "indices: Tindices", "updates: T"})
                   .output("output: T")
                   .attrs({"T: type", "Tindices: {int16, int32, int64, uint16}",
                           "bad_indices_policy: string = ''"})
                   .shape(tensor_scatter_shape));
  registry.add(OpDefBuilder("TensorScatterAdd")
                   .inputs({"tensor: T", "indices: Tindices", "updates: T"})
                   .output("output: T")
                   .attrs({"T: type", "Tindices: {int32, int64}",
                           "bad_indices_policy: string = ''"})
                   .shape(tensor_scatter_shape));
  registry.add(OpDefBuilder("TensorScatterSub")
                   .inputs({"tensor: T", "indices: Tindices", "updates: T"})
                   .output("output: T")
                   .attrs({"T: type", "Tindices: {int32, int64}",
                           "bad_indices_policy: string = ''"})
                   .shape(tensor_scatter_shape));
  registry.add(OpDefBuilder("TensorScatterMax")
                   .inputs({"tensor: T", "indices: Tindices", "updates: T"})
                   .output("output: T")
                   .attrs({"T: type", "Tindices: {int32, int64}",
                           "bad_indices_policy: string = ''"})
                   .shape(tensor_scatter_shape));
  registry.add(OpDefBuilder("TensorScatterMin")
                   .inputs({"tensor: T", "indices: Tindices", "updates: T"})
                   .output("output: T")
                   .attrs({"T: type", "Tindices: {int32, int64}",
                           "bad_indices_policy: string = ''"})
                   .shape(tensor_scatter_shape));
  registry.add(
      OpDefBuilder("ScatterNdNonAliasingAdd")
          .inputs({"input: T", "indices: Tindices", "updates: T"})
          .output("output: T")
          .attrs({"T: {float, double, int32, uint8, int16, int8, complex64, "
                  "int64, "
                  "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
                  "complex128, half, uint32, uint64, bool}",
                  "Tindices: {int32, int64}",
                  "bad_indices_policy: string = ''"})
          .shape(tensor_scatter_shape));
}

}  // namespace tagflow::graph
