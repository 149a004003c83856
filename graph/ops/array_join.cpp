// Pack, Unpack, Concat, ConcatOffset, Split, Tile, DynamicStitch,
// DynamicPartition.
#include <algorithm>

#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

// `shape` with a dimension inserted before `at`.
PartialShape insert_dim(const PartialShape& shape, int at, int64_t dim) {
  return concatenate(concatenate(sub_shape(shape, 0, at), {dim}),
                     sub_shape(shape, at, shape.rank()));
}

Status pack_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t axis, c.attr<int64_t>("axis"));
  PartialShape all = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    auto merged = all.merge(c.input(i));
    if (!merged.ok())
      return c.fail(fmt::format("shapes of inputs differ: {} and {}",
                                all.to_string(), c.input(i).to_string()));
    all = std::move(*merged);
  }
  if (!all.has_rank()) return unknown_shape(c);
  TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, all.rank() + 1));
  c.set_output(0, insert_dim(all, at, c.num_inputs()));
  return {};
}

Status unpack_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t axis, c.attr<int64_t>("axis"));
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return unknown_shape(c);
  TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, input.rank()));
  if (input.dim_known(at) && input.dim(at) != c.num_outputs())
    return c.fail(fmt::format("cannot unpack dimension {} of {} into {}", at,
                              input.to_string(), c.num_outputs()));
  const PartialShape output = concatenate(
      sub_shape(input, 0, at), sub_shape(input, at + 1, input.rank()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, output);
  return {};
}

// Concatenates inputs [first, first + count) along input `axis_input`.
Status joined_shape(ShapeContext& c, int first, int count, int axis_input) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(axis_input, 0).status());
  int rank = -1;
  for (int i = first; i < first + count; ++i) {
    if (!c.input(i).has_rank()) continue;
    if (rank >= 0 && c.input(i).rank() != rank)
      return c.fail(fmt::format("input {} is of rank {}, others of rank {}", i,
                                c.input(i).rank(), rank));
    rank = c.input(i).rank();
  }
  if (rank < 0) return unknown_shape(c);
  const auto axis = constant_index(c, axis_input);
  if (!axis) {
    c.set_output(0, PartialShape::of_rank(rank));
    return {};
  }
  TAGFLOW_ASSIGN(const int at, shape_axis(c, *axis, rank));
  PartialShape output = PartialShape::of_rank(rank);
  int64_t sum = 0;
  for (int i = first; i < first + count; ++i) {
    if (!c.input(i).has_rank()) {
      sum = PartialShape::kUnknown;
      continue;
    }
    PartialShape others = c.input(i);
    sum = add_dims(sum, others.dim(at));
    others.set_dim(at, PartialShape::kUnknown);
    auto merged = output.merge(others);
    if (!merged.ok())
      return c.fail(fmt::format("cannot join {} to {} along {}",
                                c.input(i).to_string(), output.to_string(),
                                at));
    output = std::move(*merged);
  }
  output.set_dim(at, sum);
  c.set_output(0, std::move(output));
  return {};
}

Status parallel_concat_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(auto shape, c.attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return {};
}

Status concat_shape(ShapeContext& c) {
  return joined_shape(c, 1, c.num_inputs() - 1, 0);
}

Status concat_v2_shape(ShapeContext& c) {
  return joined_shape(c, 0, c.num_inputs() - 1, c.num_inputs() - 1);
}

Status concat_offset_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(i + 1, 1));
    c.set_output(i, std::move(vector));
  }
  return {};
}

// All outputs are equal parts of input `value`; the axis may be unknown.
Status split_shape(ShapeContext& c) {
  const PartialShape& value = c.input(1);
  if (!value.has_rank()) return unknown_shape(c);
  const auto axis = constant_index(c, 0);
  PartialShape output = PartialShape::of_rank(value.rank());
  if (axis) {
    TAGFLOW_ASSIGN(const int at, shape_axis(c, *axis, value.rank()));
    output = value;
    if (value.dim_known(at)) {
      if (value.dim(at) % c.num_outputs() != 0)
        return c.fail(fmt::format("cannot split dimension {} of {} into {}", at,
                                  value.to_string(), c.num_outputs()));
      output.set_dim(at, value.dim(at) / c.num_outputs());
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, output);
  return {};
}

Status split_v_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 0).status());
  const PartialShape& value = c.input(0);
  if (!value.has_rank()) return unknown_shape(c);
  const auto axis = constant_index(c, 2);
  const auto sizes = constant_indices(c, 1);
  if (!axis) {
    for (int i = 0; i < c.num_outputs(); ++i)
      c.set_output(i, PartialShape::of_rank(value.rank()));
    return {};
  }
  TAGFLOW_ASSIGN(const int at, shape_axis(c, *axis, value.rank()));
  if (sizes && sizes->size() != size_t(c.num_outputs()))
    return c.fail(
        fmt::format("{} sizes for {} outputs", sizes->size(), c.num_outputs()));
  int64_t rest = value.dim(at);
  for (int i = 0; sizes && rest >= 0 && i < c.num_outputs(); ++i) {
    const int64_t size = (*sizes)[size_t(i)];
    if (size > 0) rest = size > rest ? -1 : rest - size;
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape output = value;
    int64_t size = sizes ? (*sizes)[size_t(i)] : PartialShape::kUnknown;
    // A size of -1 is what the other sizes leave.
    if (sizes && size == -1) size = rest;
    output.set_dim(at, size < 0 ? PartialShape::kUnknown : size);
    c.set_output(i, std::move(output));
  }
  return {};
}

Status tile_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(1, 1));
  PartialShape input = c.input(0);
  if (!input.has_rank() && vector.dim_known(0) && vector.dim(0) <= kMaxRank)
    input = PartialShape::of_rank(int(vector.dim(0)));
  if (!input.has_rank()) return unknown_shape(c);
  if (vector.dim_known(0) && vector.dim(0) != input.rank())
    return c.fail(fmt::format("{} multiples for the shape {}", vector.dim(0),
                              input.to_string()));
  const auto multiples = constant_indices(c, 1);
  for (int i = 0; i < input.rank(); ++i)
    input.set_dim(i, multiples
                         ? multiply_dims(input.dim(i), (*multiples)[size_t(i)])
                         : PartialShape::kUnknown);
  c.set_output(0, std::move(input));
  return {};
}

// Indices are inputs [0, N), data [N, 2N). Every data shape is that of its
// indices followed by the same dimensions.
Status dynamic_stitch_shape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape rest;
  int64_t size = 0;
  for (int i = 0; i < n; ++i) {
    const auto indices = constant_indices(c, i);
    if (indices && size >= 0) {
      for (int64_t index : *indices) size = std::max(size, index + 1);
    } else {
      size = PartialShape::kUnknown;
    }
    const PartialShape& shape = c.input(i);
    const PartialShape& data = c.input(n + i);
    if (!shape.has_rank() || !data.has_rank()) continue;
    if (data.rank() < shape.rank() ||
        !sub_shape(data, 0, shape.rank()).compatible(shape))
      return c.fail(fmt::format("data {} does not start with indices {}",
                                data.to_string(), shape.to_string()));
    auto merged = rest.merge(sub_shape(data, shape.rank(), data.rank()));
    if (!merged.ok())
      return c.fail(fmt::format("data {} does not end with {}",
                                data.to_string(), rest.to_string()));
    rest = std::move(*merged);
  }
  c.set_output(0, concatenate({size}, rest));
  return {};
}

Status dynamic_partition_shape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& partitions = c.input(1);
  if (!data.has_rank() || !partitions.has_rank()) return unknown_shape(c);
  if (data.rank() < partitions.rank() ||
      !sub_shape(data, 0, partitions.rank()).compatible(partitions))
    return c.fail(fmt::format("data {} does not start with partitions {}",
                              data.to_string(), partitions.to_string()));
  const PartialShape output =
      concatenate({PartialShape::kUnknown},
                  sub_shape(data, partitions.rank(), data.rank()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, output);
  return {};
}

}  // namespace

void register_array_join_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("Pack")
                   .input("values: N * T")
                   .output("output: T")
                   .attrs({"N: int >= 1", "T: type", "axis: int = 0"})
                   .shape(pack_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("Unpack")
                   .input("value: T")
                   .output("output: num * T")
                   .attrs({"num: int >= 0", "T: type", "axis: int = 0"})
                   .shape(unpack_shape)
                   .work(Work::kPick));
  registry.add(
      OpDefBuilder("ConcatV2")
          .inputs({"values: N * T", "axis: Tidx"})
          .output("output: T")
          .attrs({"N: int >= 2", "T: type", "Tidx: {int32, int64} = int32"})
          .shape(concat_v2_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("ParallelConcat")
                   .input("values: N * T")
                   .output("output: T")
                   .attrs({"N: int >= 1", "T: type", "shape: shape"})
                   .shape(parallel_concat_shape));
  registry.add(OpDefBuilder("Concat")
                   .inputs({"concat_dim: int32", "values: N * T"})
                   .output("output: T")
                   .attrs({"N: int >= 2", "T: type"})
                   .shape(concat_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("ConcatOffset")
                   .inputs({"concat_dim: int32", "shape: N * shape_type"})
                   .output("offset: N * shape_type")
                   .attrs({"N: int >= 2", "shape_type: {int32, int64} = int32"})
                   .shape(concat_offset_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("Split")
                   .inputs({"split_dim: int32", "value: T"})
                   .output("output: num_split * T")
                   .attrs({"num_split: int >= 1", "T: type"})
                   .shape(split_shape)
                   .work(Work::kPick));
  registry.add(
      OpDefBuilder("SplitV")
          .inputs({"value: T", "size_splits: Tlen", "split_dim: int32"})
          .output("output: num_split * T")
          .attrs({"num_split: int >= 1", "T: type",
                  "Tlen: {int8, int32, int64} = int64"})
          .shape(split_v_shape)
          .work(Work::kPick));
  registry.add(OpDefBuilder("Tile")
                   .inputs({"input: T", "multiples: Tmultiples"})
                   .output("output: T")
                   .attrs({"T: type", "Tmultiples: {int32, int64} = int32"})
                   .shape(tile_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("DynamicStitch")
                   .inputs({"indices: N * int32", "data: N * T"})
                   .output("merged: T")
                   .attrs({"N: int >= 1", "T: type"})
                   .shape(dynamic_stitch_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("ParallelDynamicStitch")
                   .inputs({"indices: N * int32", "data: N * T"})
                   .output("merged: T")
                   .attrs({"N: int >= 1", "T: type"})
                   .shape(dynamic_stitch_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("DynamicPartition")
                   .inputs({"data: T", "partitions: int32"})
                   .output("outputs: num_partitions * T")
                   .attrs({"num_partitions: int >= 1", "T: type"})
                   .shape(dynamic_partition_shape)
                   .work(Work::kMove));
}

}  // namespace tagflow::graph
