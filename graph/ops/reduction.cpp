// Reductions along dimensions, arg-reductions, scans, counts.
#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"

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
      .inputs({"input: T", "reduction_indices: Tidx"})
      .output("output: T")
      .attrs({"keep_dims: bool = false", types, "Tidx: {int32, int64} = int32"})
      .shape(reduction_shape)
      .work(Work::kReduce);
}

OpDefBuilder bool_reduction(const char* name) {
  return OpDefBuilder(name)
      .inputs({"input: bool", "reduction_indices: Tidx"})
      .output("output: bool")
      .attrs({"keep_dims: bool = false", "Tidx: {int32, int64} = int32"})
      .shape(reduction_shape)
      .work(Work::kReduce);
}

OpDefBuilder arg_reduction(const char* name) {
  return OpDefBuilder(name)
      .inputs({"input: T", "dimension: Tidx"})
      .output("output: output_type")
      .attrs({"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
              "uint16, half, uint32, uint64, bool}",
              "Tidx: {int16, int32, int64} = int32",
              "output_type: {int16, uint16, int32, int64} = int64"})
      .shape(arg_reduction_shape)
      .work(Work::kReduce);
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
                   .inputs({"x: T", "axis: Tidx"})
                   .output("out: T")
                   .attrs({"exclusive: bool = false", "reverse: bool = false",
                           "T: {bfloat16, half, float, double}",
                           "Tidx: {int32, int64} = int32"})
                   .shape(scan_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("L2Loss")
                   .input("t: T")
                   .output("output: T")
                   .attr("T: {half, bfloat16, float, double}")
                   .shape(scalar_shape)
                   .work(Work::kReduce));
  registry.add(
      OpDefBuilder("Cumsum")
          .inputs({"x: T", "axis: Tidx"})
          .output("out: T")
          .attrs({"exclusive: bool = false", "reverse: bool = false",
                  "T: {float, double, int32, uint8, int16, int8, complex64, "
                  "int64, "
                  "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
                  "complex128, half, uint32, uint64}",
                  "Tidx: {int32, int64} = int32"})
          .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("Cumprod")
          .inputs({"x: T", "axis: Tidx"})
          .output("out: T")
          .attrs({"exclusive: bool = false", "reverse: bool = false",
                  "T: {float, double, int32, uint8, int16, int8, complex64, "
                  "int64, "
                  "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
                  "complex128, half, uint32, uint64}",
                  "Tidx: {int32, int64} = int32"})
          .shape(unchanged_shape));
  registry.add(OpDefBuilder("Bincount")
                   .inputs({"arr: int32", "size: int32", "weights: T"})
                   .output("bins: T")
                   .attr("T: {int32, int64, float, double}")
                   .shape(bincount_shape)
                   .work(Work::kReduce));
  registry.add(
      OpDefBuilder("DenseBincount")
          .inputs({"input: Tidx", "size: Tidx", "weights: T"})
          .output("output: T")
          .attrs({"Tidx: {int32, int64}", "T: {int32, int64, float, double}",
                  "binary_output: bool = false"})
          .shape(dense_bincount_shape)
          .work(Work::kReduce));
  registry.add(OpDefBuilder("HistogramFixedWidth")
                   .inputs({"values: T", "value_range: T", "nbins: int32"})
                   .output("out: dtype")
                   .attrs({"T: {int32, int64, float, double}",
                           "dtype: {int32, int64} = int32"})
                   .shape(histogram_shape)
                   .work(Work::kReduce));
}

}  // namespace tagflow::graph
