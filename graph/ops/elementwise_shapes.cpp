#include "graph/ops/elementwise_shapes.h"

namespace tagflow::graph {

namespace {

bool is_scalar(const PartialShape& shape) {
  return shape.has_rank() && shape.rank() == 0;
}

// If `scalars_fit`, a scalar is compatible with any shape.
Status merged_shape(ShapeContext& c, bool scalars_fit) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (scalars_fit && is_scalar(c.input(i))) continue;
    if (scalars_fit && is_scalar(shape)) shape = c.input(i);
    if (!shape.compatible(c.input(i)))
      return c.fail(fmt::format("inputs 0 and {} have different shapes: {}, {}",
                                i, shape.to_string(), c.input(i).to_string()));
    TAGFLOW_ASSIGN(shape, shape.merge(c.input(i)));
  }
  c.set_output(0, std::move(shape));
  return {};
}

}  // namespace

Status same_shape(ShapeContext& c) { return merged_shape(c, false); }

Status sum_shape(ShapeContext& c) {
  return merged_shape(c, c.node().output_dtypes()[0] == DataType::kVariant);
}

Status equality_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const bool refuses, c.attr<bool>("incompatible_shape_error"));
  if (refuses) return broadcast_shape(c);
  // Incompatibility is only certain if both are fully known.
  if (!c.input(0).fully_known() || !c.input(1).fully_known()) return {};
  Result<PartialShape> shape = broadcast(c.input(0), c.input(1));
  c.set_output(0, shape.ok() ? *shape : PartialShape::scalar());
  return {};
}

Status select_shape(ShapeContext& c) {
  const PartialShape& condition = c.input(0);
  const PartialShape& value = c.input(1);
  if (!value.compatible(c.input(2)))
    return c.fail(fmt::format("the values have different shapes: {}, {}",
                              value.to_string(), c.input(2).to_string()));
  TAGFLOW_ASSIGN(PartialShape shape, value.merge(c.input(2)));
  const bool rows = condition.has_rank() && condition.rank() == 1 &&
                    shape.has_rank() && shape.rank() >= 1;
  if (rows && shape.dim_known(0) && condition.dim_known(0) &&
      shape.dim(0) != condition.dim(0))
    return c.fail(fmt::format("a condition of shape {} for values of shape {}",
                              condition.to_string(), shape.to_string()));
  // If one side is unknown, no error can be found.
  const bool alike = condition.has_rank() && condition.rank() > 1;
  if (alike && !condition.compatible(shape))
    return c.fail(fmt::format("a condition of shape {} for values of shape {}",
                              condition.to_string(), shape.to_string()));
  if (alike) {
    TAGFLOW_ASSIGN(shape, shape.merge(condition));
  }
  c.set_output(0, std::move(shape));
  return {};
}

Status select_v2_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape values, broadcast(c.input(1), c.input(2)));
  TAGFLOW_ASSIGN(PartialShape shape, broadcast(c.input(0), values));
  c.set_output(0, std::move(shape));
  return {};
}

Status clip_shape(ShapeContext& c) {
  for (int i = 1; i < 3; ++i) {
    const PartialShape& limit = c.input(i);
    if (limit.has_rank() && limit.rank() > 0 && !limit.compatible(c.input(0)))
      return c.fail(fmt::format(
          "limits must be scalars or of the value's shape {}, not {}",
          c.input(0).to_string(), limit.to_string()));
  }
  c.set_output(0, c.input(0));
  return {};
}

Status bitcast_shape(ShapeContext& c) {
  const size_t from = dtype_size(c.node().input_dtypes()[0]);
  const size_t to = dtype_size(c.node().output_dtypes()[0]);
  const PartialShape& input = c.input(0);
  if (from == to || !input.has_rank()) {
    c.set_output(0, input);
    return {};
  }
  PartialShape shape = input;
  if (from > to) {
    shape.add_dim(int64_t(from / to));
  } else {
    const int64_t parts = int64_t(to / from);
    const int last = input.rank() - 1;
    if (last < 0 || (input.dim_known(last) && input.dim(last) != parts))
      return c.fail(fmt::format("the last dimension of {} must be {}",
                                input.to_string(), parts));
    shape = PartialShape(input.dims().first(size_t(last)));
  }
  c.set_output(0, std::move(shape));
  return {};
}

Status broadcast_to_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(1));
  const PartialShape& input = c.input(0);
  if (shape.has_rank() && input.has_rank()) {
    const int added = shape.rank() - input.rank();
    bool fits = added >= 0;
    for (int i = 0; fits && i < input.rank(); ++i)
      fits = !input.dim_known(i) || !shape.dim_known(added + i) ||
             input.dim(i) == 1 || input.dim(i) == shape.dim(added + i);
    if (!fits)
      return c.fail(fmt::format("{} cannot be broadcast to {}",
                                input.to_string(), shape.to_string()));
  }
  c.set_output(0, std::move(shape));
  return {};
}

Status broadcast_gradient_args_shape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    c.set_output(i, PartialShape::of_rank(1));
  }
  return {};
}

}  // namespace tagflow::graph
