// Shape, Size, Rank, Reshape, ExpandDims, Squeeze, Fill, ZerosLike, OnesLike,
// Range, LinSpace, BroadcastArgs.
#include <cmath>

#include "graph/dtype_visit.h"
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

// Each output is the shape of the corresponding input.
Status shape_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& input = c.input(i);
    c.set_output(
        i, {input.has_rank() ? int64_t(input.rank()) : PartialShape::kUnknown});
  }
  return {};
}

Status reshape_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(1));
  const PartialShape& input = c.input(0);
  const int64_t count = input.has_rank() ? input.num_elements() : -1;
  if (!shape.has_rank() || count < 0) {
    c.set_output(0, std::move(shape));
    return {};
  }
  int64_t known = 1;
  int unknown_at = -1, num_unknown = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim_known(i)) {
      known = multiply_dims(known, shape.dim(i));
    } else {
      unknown_at = i;
      ++num_unknown;
    }
  }
  const bool fits =
      num_unknown > 0 ? known <= 0 || count % known == 0 : known == count;
  // Unknown dimensions may come from a Shape; with a constant, the kernel fails
  // in any case.
  if (!fits)
    return c.fail(fmt::format("cannot reshape {} elements of {} to {}", count,
                              input.to_string(), shape.to_string()));
  if (num_unknown == 1 && known > 0) shape.set_dim(unknown_at, count / known);
  c.set_output(0, std::move(shape));
  return {};
}

Status expand_dims_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return unknown_shape(c);
  const auto axis = constant_index(c, 1);
  if (!axis) {
    c.set_output(0, PartialShape::of_rank(input.rank() + 1));
    return {};
  }
  TAGFLOW_ASSIGN(const int at, shape_axis(c, *axis, input.rank() + 1));
  c.set_output(0, concatenate(concatenate(sub_shape(input, 0, at), {1}),
                              sub_shape(input, at, input.rank())));
  return {};
}

Status squeeze_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  TAGFLOW_ASSIGN(auto axes, c.attr<std::vector<int64_t>>("squeeze_dims"));
  if (!input.has_rank()) return unknown_shape(c);
  std::vector<bool> squeezed(size_t(input.rank()), false);
  for (int64_t axis : axes) {
    TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, input.rank()));
    if (input.dim_known(at) && input.dim(at) != 1)
      return c.fail(fmt::format("cannot squeeze dimension {} of {}", at,
                                input.to_string()));
    squeezed[size_t(at)] = true;
  }
  PartialShape output = PartialShape::scalar();
  for (int i = 0; i < input.rank(); ++i) {
    if (axes.empty()) {
      // An unknown dimension may be 1, so even the rank is unknown.
      if (!input.dim_known(i)) return unknown_shape(c);
      squeezed[size_t(i)] = input.dim(i) == 1;
    }
    if (!squeezed[size_t(i)]) output.add_dim(input.dim(i));
  }
  c.set_output(0, std::move(output));
  return {};
}

Status fill_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(0));
  c.set_output(0, std::move(shape));
  return {};
}

// The number of values of a constant Range, for floats in the arithmetic of
// their type, as the kernel counts them; unknown if it is invalid, which the
// kernel reports.
template <class T>
int64_t range_length(const Tensor& start, const Tensor& limit,
                     const Tensor& delta) {
  const auto from = double(start.scalar_value<T>());
  const auto to = double(limit.scalar_value<T>());
  const auto step = double(delta.scalar_value<T>());
  double steps = (to - from) / step;
  if constexpr (!std::is_integral_v<T>)
    steps = double(T(limit.scalar_value<T>() - start.scalar_value<T>()) /
                   delta.scalar_value<T>());
  // Doubles are not exact beyond 2^53.
  if (std::fmax(std::fabs(from), std::fabs(to)) > 9e15)
    return PartialShape::kUnknown;
  const double length = std::ceil(steps);
  if (!(length >= 0 && length < 1e15)) return PartialShape::kUnknown;
  return int64_t(length);
}

Status range_shape(ShapeContext& c) {
  int64_t length = PartialShape::kUnknown;
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
    const Tensor* value = c.constant(i);
    known = known && value != nullptr && value->num_elements() == 1;
  }
  if (known) {
    visit_real(c.constant(0)->dtype(), [&]<class T>(TypeTag<T>) {
      length = range_length<T>(*c.constant(0), *c.constant(1), *c.constant(2));
    });
  }
  c.set_output(0, {length});
  return {};
}

Status lin_space_shape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  const auto num = constant_index(c, 2);
  if (num && *num <= 0)
    return c.fail(fmt::format("num must be positive, is {}", *num));
  c.set_output(0, {num.value_or(PartialShape::kUnknown)});
  return {};
}

Status broadcast_args_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape a, c.with_rank(0, 1));
  TAGFLOW_ASSIGN(PartialShape b, c.with_rank(1, 1));
  int64_t length = PartialShape::kUnknown;
  if (a.dim_known(0) && b.dim_known(0)) length = std::max(a.dim(0), b.dim(0));
  c.set_output(0, {length});
  return {};
}

}  // namespace

void register_array_basic_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("Shape")
                   .input("input: T")
                   .output("output: out_type")
                   .attrs({"T: type", "out_type: {int32, int64} = int32"})
                   .shape(shape_shape)
                   .work(Work::kNoData));
  registry.add(
      OpDefBuilder("ShapeN")
          .input("input: N * T")
          .output("output: N * out_type")
          .attrs({"N: int >= 1", "T: type", "out_type: {int32, int64} = int32"})
          .shape(shape_shape)
          .work(Work::kNoData));
  registry.add(OpDefBuilder("Size")
                   .input("input: T")
                   .output("output: out_type")
                   .attrs({"T: type", "out_type: {int32, int64} = int32"})
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("Rank")
                   .input("input: T")
                   .output("output: int32")
                   .attr("T: type")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("Reshape")
                   .inputs({"tensor: T", "shape: Tshape"})
                   .output("output: T")
                   .attrs({"T: type", "Tshape: {int32, int64} = int32"})
                   .shape(reshape_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("ExpandDims")
                   .inputs({"input: T", "dim: Tdim"})
                   .output("output: T")
                   .attrs({"T: type", "Tdim: {int32, int64} = int32"})
                   .shape(expand_dims_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("Squeeze")
                   .input("input: T")
                   .output("output: T")
                   .attrs({"T: type", "squeeze_dims: list(int) >= 0 = []"})
                   .shape(squeeze_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("Fill")
                   .inputs({"dims: index_type", "value: T"})
                   .output("output: T")
                   .attrs({"T: type", "index_type: {int32, int64} = int32"})
                   .shape(fill_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("ZerosLike")
                   .input("x: T")
                   .output("y: T")
                   .attr("T: type")
                   .shape(unchanged_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("OnesLike")
          .input("x: T")
          .output("y: T")
          .attr(
              "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, "
              "int32, uint32, int64, uint64, complex64, complex128, bool}")
          .shape(unchanged_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("Range")
                   .inputs({"start: Tidx", "limit: Tidx", "delta: Tidx"})
                   .output("output: Tidx")
                   .attr("Tidx: {bfloat16, half, float, double, int8, int16, "
                         "int32, int64, "
                         "uint16, uint32, uint64} = int32")
                   .shape(range_shape));
  registry.add(OpDefBuilder("LinSpace")
                   .inputs({"start: T", "stop: T", "num: Tidx"})
                   .output("output: T")
                   .attrs({"T: {bfloat16, half, float, double}",
                           "Tidx: {int32, int64} = int32"})
                   .shape(lin_space_shape));
  registry.add(OpDefBuilder("BroadcastArgs")
                   .inputs({"s0: T", "s1: T"})
                   .output("r0: T")
                   .attr("T: {int32, int64} = int32")
                   .shape(broadcast_args_shape)
                   .work(Work::kNoData));
}

}  // namespace tagflow::graph
