// Reductions along dimensions, arg-reductions, scans, counts.
#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {
namespace {

// The elements of an integer constant, as int64.
std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  if (tensor.dtype() == DataType::kInt32)
    for (int32_t value : tensor.flat<int32_t>()) values.push_back(value);
  if (tensor.dtype() == DataType::kInt64)
    for (int64_t value : tensor.flat<int64_t>()) values.push_back(value);
  if (tensor.dtype() == DataType::kInt16)
    for (int16_t value : tensor.flat<int16_t>()) values.push_back(value);
  return values;
}

// Input 0 without the dimensions given by input 1; with keep_dims, these are 1.
// The kernel rejects duplicates.
Status reduction_shape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TAGFLOW_ASSIGN(const bool keep_dims, c.attr<bool>("keep_dims"));
  if (c.input(1).has_rank() && c.input(1).rank() > 1)
    return c.fail(fmt::format("the axes are {}, not a scalar or a vector",
                              c.input(1).to_string()));
  const Tensor* axes = c.constant(1);
  if (!in.has_rank()) return Status();
  if (axes == nullptr) {
    if (keep_dims) c.set_output(0, PartialShape::of_rank(in.rank()));
    return Status();
  }
  std::vector<bool> reduced(size_t(in.rank()), false);
  for (int64_t axis : integers(*axes)) {
    if (axis < -in.rank() || axis >= in.rank())
      return c.fail(fmt::format("axis {} is not a dimension of {}", axis,
                                in.to_string()));
    reduced[size_t(axis < 0 ? axis + in.rank() : axis)] = true;
  }
  PartialShape out = PartialShape::scalar();
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[size_t(i)])
      out.add_dim(in.dim(i));
    else if (keep_dims)
      out.add_dim(1);
  }
  c.set_output(0, std::move(out));
  return Status();
}

// Input 0 without the one dimension given by input 1.
Status arg_reduction_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return Status();
  if (in.rank() == 0) return c.fail("a scalar has no dimension to reduce");
  const Tensor* axis_tensor = c.constant(1);
  if (axis_tensor == nullptr) {
    c.set_output(0, PartialShape::of_rank(in.rank() - 1));
    return Status();
  }
  const int64_t axis = integers(*axis_tensor)[0];
  if (axis < -in.rank() || axis >= in.rank())
    return c.fail(
        fmt::format("dimension {} is not one of {}", axis, in.to_string()));
  PartialShape out = PartialShape::scalar();
  for (int i = 0; i < in.rank(); ++i)
    if (i != (axis < 0 ? axis + in.rank() : axis)) out.add_dim(in.dim(i));
  c.set_output(0, std::move(out));
  return Status();
}

Status scan_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, c.input(0));
  return Status();
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

OpDefBuilder reduction(const char* name, const char* types) {
  return OpDefBuilder(name)
      .input("input: T")
      .input("reduction_indices: Tidx")
      .output("output: T")
      .attr("keep_dims: bool = false")
      .attr(types)
      .attr("Tidx: {int32, int64} = int32")
      .work(Work::kReduce)
      .shape(reduction_shape);
}

OpDefBuilder bool_reduction(const char* name) {
  return OpDefBuilder(name)
      .input("input: bool")
      .input("reduction_indices: Tidx")
      .output("output: bool")
      .attr("keep_dims: bool = false")
      .attr("Tidx: {int32, int64} = int32")
      .work(Work::kReduce)
      .shape(reduction_shape);
}

OpDefBuilder arg_reduction(const char* name) {
  return OpDefBuilder(name)
      .input("input: T")
      .input("dimension: Tidx")
      .output("output: output_type")
      .attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
          "uint16, half, uint32, uint64, bool}")
      .attr("Tidx: {int16, int32, int64} = int32")
      .attr("output_type: {int16, uint16, int32, int64} = int64")
      .work(Work::kReduce)
      .shape(arg_reduction_shape);
}

}  // namespace

void register_reduction_ops(OpRegistry& registry) {
  for (const char* name : {"Sum", "Mean", "Prod", "EuclideanNorm"})
    registry.add(reduction(name, "T: numbertype"));
  for (const char* name : {"Max", "Min"})
    registry.add(reduction(name, "T: realnumbertype"));
  for (const char* name : {"All", "Any"}) registry.add(bool_reduction(name));
  for (const char* name : {"ArgMax", "ArgMin"})
    registry.add(arg_reduction(name));
  registry.add(OpDefBuilder("CumulativeLogsumexp")
                   .input("x: T")
                   .input("axis: Tidx")
                   .output("out: T")
                   .attr("exclusive: bool = false")
                   .attr("reverse: bool = false")
                   .attr("T: {bfloat16, half, float, double}")
                   .attr("Tidx: {int32, int64} = int32")
                   .work(Work::kTranscendental)
                   .shape(scan_shape));
  registry.add(OpDefBuilder("L2Loss")
                   .input("t: T")
                   .output("output: T")
                   .attr("T: {half, bfloat16, float, double}")
                   .work(Work::kReduce)
                   .shape(scalar_shape));
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
}

}  // namespace tagflow::graph
