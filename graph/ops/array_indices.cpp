// Indices of elements: OneHot, Where, UnravelIndex.
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status one_hot_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t axis, c.attr<int64_t>("axis"));
  for (int i = 1; i <= 3; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  const auto depth = constant_index(c, 1);
  if (depth && *depth < 0)
    return c.fail(fmt::format("depth {} is negative", *depth));
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return unknown_shape(c);
  TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, indices.rank() + 1));
  c.set_output(
      0, concatenate(concatenate(sub_shape(indices, 0, at),
                                 {depth.value_or(PartialShape::kUnknown)}),
                     sub_shape(indices, at, indices.rank())));
  return {};
}

Status where_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  c.set_output(
      0, {PartialShape::kUnknown,
          input.has_rank() ? int64_t(input.rank()) : PartialShape::kUnknown});
  return {};
}

Status unravel_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape dims, c.with_rank(1, 1));
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return unknown_shape(c);
  if (indices.rank() > 1)
    return c.fail(fmt::format("indices must be a scalar or a vector, not {}",
                              indices.to_string()));
  c.set_output(0, concatenate({dims.dim(0)}, indices));
  return {};
}

}  // namespace

void register_array_indices_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("OneHot")
                   .inputs({"indices: TI", "depth: int32", "on_value: T",
                            "off_value: T"})
                   .output("output: T")
                   .attrs({"axis: int = -1", "T: type",
                           "TI: {uint8, int8, int32, int64} = int64"})
                   .shape(one_hot_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("Where")
          .input("input: T")
          .output("index: int64")
          .attr(
              "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
              "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
              "complex128, half, uint32, uint64, bool} = bool")
          .shape(where_shape)
          .work(Work::kReduce));
  registry.add(OpDefBuilder("UnravelIndex")
                   .inputs({"indices: Tidx", "dims: Tidx"})
                   .output("output: Tidx")
                   .attr("Tidx: {int32, int64} = int32")
                   .shape(unravel_shape));
}

}  // namespace tagflow::graph
