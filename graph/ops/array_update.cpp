// Ops that replace rows of tensors, or classify elements by rank: Empty,
// Inplace*, TensorStridedSliceUpdate, Bucketize, NthElement, ...
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status empty_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(0));
  c.set_output(0, std::move(shape));
  return {};
}

// As many rows of x as there are indices.
Status inplace_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape x, c.with_rank_at_least(0, 1));
  TAGFLOW_ASSIGN(const PartialShape i, c.with_rank(1, 1));
  if (x.has_rank()) {
    const PartialShape wanted = concatenate(i, sub_shape(x, 1, x.rank()));
    if (!wanted.compatible(c.input(2)))
      return c.fail(fmt::format("v should be {} for i {} and x {}, not {}",
                                wanted.to_string(), i.to_string(),
                                x.to_string(), c.input(2).to_string()));
  }
  return unchanged_shape(c);
}

Status nth_element_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape input, c.with_rank_at_least(0, 1));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  if (!input.has_rank()) return unknown_shape(c);
  const int last = input.rank() - 1;
  if (const auto n = constant_index(c, 1);
      n && (*n < 0 || (input.dim_known(last) && *n >= input.dim(last))))
    return c.fail(fmt::format("n {} is outside the last dimension of {}", *n,
                              input.to_string()));
  c.set_output(0, sub_shape(input, 0, last));
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

void register_array_update_ops(OpRegistry& registry) {
  // Stateful in TensorFlow, but here its elements are always zeros.
  define(registry, "Empty", {"shape: int32"}, {"output: dtype"},
         {"dtype: type", "init: bool = false"}, empty_shape);
  for (const char* name : {"InplaceUpdate", "InplaceAdd", "InplaceSub"})
    define(registry, name, {"x: T", "i: int32", "v: T"}, {"y: T"}, {"T: type"},
           inplace_shape);
  define(
      registry, "TensorStridedSliceUpdate",
      {"input: T", "begin: Index", "end: Index", "strides: Index", "value: T"},
      {"output: T"},
      {"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
       "end_mask: int = 0", "ellipsis_mask: int = 0", "new_axis_mask: int = 0",
       "shrink_axis_mask: int = 0"},
      unchanged_shape);
  define(registry, "Bucketize", {"input: T"}, {"output: int32"},
         {"T: {int32, int64, float, double}", "boundaries: list(float)"},
         unchanged_shape);
  define(registry, "NthElement", {"input: T", "n: int32"}, {"values: T"},
         {"reverse: bool = false", "T: realnumbertype"}, nth_element_shape);
  define(registry, "UnravelIndex", {"indices: Tidx", "dims: Tidx"},
         {"output: Tidx"}, {"Tidx: {int32, int64} = int32"}, unravel_shape);
  define(registry, "PopulationCount", {"x: T"}, {"y: uint8"},
         {"T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"},
         unchanged_shape);
}

}  // namespace tagflow::graph
