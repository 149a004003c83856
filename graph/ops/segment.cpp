#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// [first] + the dimensions of `data` from `from` on.
PartialShape with_first(int64_t first, const PartialShape& data, int from) {
  if (!data.has_rank()) return PartialShape();
  PartialShape out({first});
  for (int i = from; i < data.rank(); ++i) out.add_dim(data.dim(i));
  return out;
}

// The value of a constant scalar as a dimension; unknown if it is not constant.
// InvalidArgument if it is negative.
Result<int64_t> size_of(const ShapeContext& c, int input) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(input, 0).status());
  const Tensor* value = c.constant(input);
  if (value == nullptr) return PartialShape::kUnknown;
  const int64_t size = value->dtype() == DataType::kInt32
                           ? value->scalar_value<int32_t>()
                           : value->scalar_value<int64_t>();
  if (size < 0)
    return c.fail(fmt::format("the number of rows is {}, below 0", size));
  return size;
}

// data, segment_ids; the last id determines the number of rows.
Status segment_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  c.set_output(0, with_first(PartialShape::kUnknown, c.input(0), 1));
  return Status();
}

// data, segment_ids (a prefix of data's shape), num_segments.
Status unsorted_segment_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t rows, size_of(c, 2));
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  if (!data.has_rank() || !ids.has_rank()) return Status();
  if (ids.rank() > data.rank())
    return c.fail(fmt::format("segment_ids {} is not a prefix of data {}",
                              ids.to_string(), data.to_string()));
  for (int i = 0; i < ids.rank(); ++i) {
    if (ids.dim_known(i) && data.dim_known(i) && ids.dim(i) != data.dim(i))
      return c.fail(fmt::format("segment_ids {} is not a prefix of data {}",
                                ids.to_string(), data.to_string()));
  }
  c.set_output(0, with_first(rows, data, ids.rank()));
  return Status();
}

// data, indices, segment_ids.
Status sparse_segment_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1, 1));
  TAGFLOW_ASSIGN(const PartialShape ids, c.with_rank(2, 1));
  TAGFLOW_RETURN_IF_ERROR(indices.merge(ids).status());
  c.set_output(0, with_first(PartialShape::kUnknown, c.input(0), 1));
  return Status();
}

// The inputs of sparse_segment_shape(), and num_segments, or output_dim0 of a
// gradient.
Status sized_sparse_segment_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(sparse_segment_shape(c));
  TAGFLOW_ASSIGN(const int64_t rows, size_of(c, 3));
  c.set_output(0, with_first(rows, c.input(0), 1));
  return Status();
}

// One row for each index.
Status unique_sparse_segment_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(sparse_segment_shape(c));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(3, 0).status());
  c.set_output(1, {PartialShape::kUnknown});
  return Status();
}

void add_segment(OpRegistry& registry, const char* name, const char* types) {
  registry.add(OpDefBuilder(name)
                   .inputs({"data: T", "segment_ids: Tindices"})
                   .output("output: T")
                   .attrs({types, "Tindices: {int32, int64}"})
                   .shape(segment_shape)
                   .work(Work::kReduce));
}

void add_unsorted(OpRegistry& registry, const char* name, const char* types) {
  registry.add(OpDefBuilder(name)
                   .inputs({"data: T", "segment_ids: Tindices",
                            "num_segments: Tnumsegments"})
                   .output("output: T")
                   .attrs({types, "Tindices: {int16, int32, int64}",
                           "Tnumsegments: {int32, int64} = int32"})
                   .shape(unsorted_segment_shape)
                   .work(Work::kReduce));
}

void add_sparse(OpRegistry& registry, const std::string& name,
                const char* types) {
  const auto base = [&](const std::string& suffix) {
    OpDefBuilder builder(name + suffix);
    builder.inputs({"data: T", "indices: Tidx", "segment_ids: Tsegmentids"})
        .output("output: T")
        .attrs({types, "Tidx: {int32, int64} = int32",
                "Tsegmentids: {int32, int64} = int32",
                "sparse_gradient: bool = false"});
    return builder;
  };
  registry.add(base("").shape(sparse_segment_shape));
  registry.add(base("WithNumSegments")
                   .input("num_segments: Tnumsegments")
                   .attr("Tnumsegments: {int32, int64} = int32")
                   .shape(sized_sparse_segment_shape));
  registry.add(
      OpDefBuilder(name + "GradV2")
          .inputs({"grad: T", "indices: Tidx", "segment_ids: Tsegmentids",
                   "dense_output_dim0: int32"})
          .outputs({"output: T", "sorted_unique_indices: Tidx"})
          .attrs({"T: {bfloat16, half, float, double}",
                  "Tidx: {int32, int64} = int32",
                  "Tsegmentids: {int32, int64} = int32"})
          .shape(unique_sparse_segment_shape));
  registry.add(OpDefBuilder(name + "Grad")
                   .inputs({"grad: T", "indices: Tidx",
                            "segment_ids: Tsegmentids", "output_dim0: int32"})
                   .output("output: T")
                   .attrs({"T: {bfloat16, half, float, double}",
                           "Tidx: {int32, int64} = int32",
                           "Tsegmentids: {int32, int64} = int32"})
                   .shape(sized_sparse_segment_shape));
}

}  // namespace

void register_segment_ops(OpRegistry& registry) {
  const char* numbers = "T: numbertype";
  const char* reals = "T: realnumbertype";
  for (const char* name : {"SegmentSum", "SegmentMean", "SegmentProd"})
    add_segment(registry, name, numbers);
  for (const char* name : {"SegmentMax", "SegmentMin"})
    add_segment(registry, name, reals);
  for (const char* name : {"UnsortedSegmentSum", "UnsortedSegmentProd"})
    add_unsorted(registry, name, numbers);
  for (const char* name : {"UnsortedSegmentMax", "UnsortedSegmentMin"})
    add_unsorted(registry, name, reals);
  add_sparse(registry, "SparseSegmentSum", reals);
  for (const char* name : {"SparseSegmentMean", "SparseSegmentSqrtN"})
    add_sparse(registry, name, "T: {bfloat16, half, float, double}");
}

}  // namespace tagflow::graph
