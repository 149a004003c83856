// Ops that look at elements to find, count or order them: OneHot, Where,
// Unique, ListDiff, TopK, Cumsum, Bincount, ...
#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"

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

Status unique_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(0, 1));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, {PartialShape::kUnknown});
  c.set_output(1, std::move(vector));
  return {};
}

Status unique_v2_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  for (int i = 1; i < c.num_outputs(); ++i)
    c.set_output(i, {PartialShape::kUnknown});
  if (input.has_rank()) c.set_output(0, PartialShape::of_rank(input.rank()));
  return {};
}

Status list_diff_shape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    c.set_output(i, {PartialShape::kUnknown});
  }
  return {};
}

Status top_k_of(ShapeContext& c, int64_t k) {
  TAGFLOW_ASSIGN(PartialShape output, c.with_rank_at_least(0, 1));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  const int last = output.rank() - 1;
  if (output.dim_known(last) && k > output.dim(last))
    return c.fail(
        fmt::format("{} has fewer than k = {} columns", output.to_string(), k));
  output.set_dim(last, k);
  c.set_output(0, output);
  c.set_output(1, std::move(output));
  return {};
}

Status top_k_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t k, c.attr<int64_t>("k"));
  return top_k_of(c, k);
}

Status top_k_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  const auto k = constant_index(c, 1);
  if (k && *k < 0) return c.fail(fmt::format("k = {} is negative", *k));
  return top_k_of(c, k.value_or(PartialShape::kUnknown));
}

// A vector whose length is the value of an input.
Status counts_shape(ShapeContext& c, int size_input) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(size_input, 0).status());
  const auto size = constant_index(c, size_input);
  if (size && *size < 0)
    return c.fail(fmt::format("size {} is negative", *size));
  c.set_output(0, {size.value_or(PartialShape::kUnknown)});
  return {};
}

Status bincount_shape(ShapeContext& c) { return counts_shape(c, 1); }

Status histogram_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  return counts_shape(c, 2);
}

Status dense_bincount_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(counts_shape(c, 1));
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return unknown_shape(c);
  if (input.rank() > 2)
    return c.fail(fmt::format("the rank of {} is over 2", input.to_string()));
  if (input.rank() == 2)
    c.set_output(0, concatenate({input.dim(0)}, c.outputs()[0]));
  return {};
}

Status bound_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_ASSIGN(PartialShape values, c.with_rank(1, 2));
  c.set_output(0, std::move(values));
  return {};
}

}  // namespace

void register_order_ops(OpRegistry& registry) {
  define(
      registry, "OneHot",
      {"indices: TI", "depth: int32", "on_value: T", "off_value: T"},
      {"output: T"},
      {"axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = int64"},
      one_hot_shape, Work::kMove);
  define(registry, "Where", {"input: T"}, {"index: int64"},
         {"T: {float, double, int32, uint8, int16, int8, complex64, int64, "
          "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
          "complex128, half, uint32, uint64, bool} = bool"},
         where_shape, Work::kReduce);
  define(registry, "Unique", {"x: T"}, {"y: T", "idx: out_idx"},
         {"T: type", "out_idx: {int32, int64} = int32"}, unique_shape,
         Work::kSort);
  define(registry, "UniqueV2", {"x: T", "axis: Taxis"},
         {"y: T", "idx: out_idx"},
         {"T: type", "Taxis: {int32, int64} = int64",
          "out_idx: {int32, int64} = int32"},
         unique_v2_shape, Work::kSort);
  define(registry, "UniqueWithCounts", {"x: T"},
         {"y: T", "idx: out_idx", "count: out_idx"},
         {"T: type", "out_idx: {int32, int64} = int32"}, unique_shape,
         Work::kSort);
  define(registry, "UniqueWithCountsV2", {"x: T", "axis: Taxis"},
         {"y: T", "idx: out_idx", "count: out_idx"},
         {"T: type", "Taxis: {int32, int64} = int64",
          "out_idx: {int32, int64} = int32"},
         unique_v2_shape, Work::kSort);
  define(registry, "ListDiff", {"x: T", "y: T"}, {"out: T", "idx: out_idx"},
         {"T: type", "out_idx: {int32, int64} = int32"}, list_diff_shape,
         Work::kSort);
  define(registry, "TopKV2", {"input: T", "k: Tk"},
         {"values: T", "indices: index_type"},
         {"sorted: bool = true", "T: realnumbertype",
          "Tk: {int16, int32, int64} = int32",
          "index_type: {int16, int32, int64} = int32"},
         top_k_v2_shape, Work::kSort);
  define(registry, "TopK", {"input: T"}, {"values: T", "indices: int32"},
         {"k: int >= 0", "sorted: bool = true", "T: realnumbertype"},
         top_k_shape, Work::kSort);
  define(registry, "Cumsum", {"x: T", "axis: Tidx"}, {"out: T"},
         {"exclusive: bool = false", "reverse: bool = false",
          "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
          "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
          "complex128, half, uint32, uint64}",
          "Tidx: {int32, int64} = int32"},
         unchanged_shape);
  define(registry, "Cumprod", {"x: T", "axis: Tidx"}, {"out: T"},
         {"exclusive: bool = false", "reverse: bool = false",
          "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
          "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
          "complex128, half, uint32, uint64}",
          "Tidx: {int32, int64} = int32"},
         unchanged_shape);
  define(registry, "Bincount", {"arr: int32", "size: int32", "weights: T"},
         {"bins: T"}, {"T: {int32, int64, float, double}"}, bincount_shape,
         Work::kReduce);
  define(registry, "DenseBincount", {"input: Tidx", "size: Tidx", "weights: T"},
         {"output: T"},
         {"Tidx: {int32, int64}", "T: {int32, int64, float, double}",
          "binary_output: bool = false"},
         dense_bincount_shape, Work::kReduce);
  define(registry, "HistogramFixedWidth",
         {"values: T", "value_range: T", "nbins: int32"}, {"out: dtype"},
         {"T: {int32, int64, float, double}", "dtype: {int32, int64} = int32"},
         histogram_shape, Work::kReduce);
  define(registry, "LowerBound", {"sorted_inputs: T", "values: T"},
         {"output: out_type"}, {"T: type", "out_type: {int32, int64} = int32"},
         bound_shape, Work::kSort);
  define(registry, "UpperBound", {"sorted_inputs: T", "values: T"},
         {"output: out_type"}, {"T: type", "out_type: {int32, int64} = int32"},
         bound_shape, Work::kSort);
}

}  // namespace tagflow::graph
