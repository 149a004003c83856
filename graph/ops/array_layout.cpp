// Transpose, Pad, Reverse, Roll, SpaceToBatch, DepthToSpace and other ops that
// move elements.
#include <algorithm>
#include <limits>

#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status invert_permutation_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(0, 1));
  c.set_output(0, std::move(vector));
  return {};
}

Status transpose_shape(ShapeContext& c) {
  PartialShape input = c.input(0);
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank_at_least(1, 0));
  const auto perm = constant_indices(c, 1);
  if (!input.has_rank()) {
    if (!vector.has_rank() || vector.rank() != 1 || !vector.dim_known(0) ||
        vector.dim(0) > kMaxRank)
      return unknown_shape(c);
    input = PartialShape::of_rank(int(vector.dim(0)));
  }
  PartialShape output = PartialShape::of_rank(input.rank());
  if (perm) {
    if (perm->size() != size_t(input.rank()))
      return c.fail(fmt::format("a permutation of {} for the shape {}",
                                perm->size(), input.to_string()));
    for (int i = 0; i < input.rank(); ++i) {
      TAGFLOW_ASSIGN(const int at,
                     shape_axis(c, (*perm)[size_t(i)], input.rank()));
      output.set_dim(i, input.dim(at));
    }
  }
  c.set_output(0, std::move(output));
  return {};
}

// The input; if its rank is unknown and the paddings have shape n x 2, with
// rank n.
Result<PartialShape> padded_input(const ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape paddings, c.with_rank(1, 2));
  PartialShape input = c.input(0);
  if (paddings.dim_known(0)) {
    if (!input.has_rank() && paddings.dim(0) <= kMaxRank)
      return PartialShape::of_rank(int(paddings.dim(0)));
    if (input.has_rank() && input.rank() != paddings.dim(0))
      return c.fail(fmt::format("paddings {} do not fit the shape {}",
                                paddings.to_string(), input.to_string()));
  }
  return input;
}

// Adds the paddings times `sign` to each dimension.
Status padded_shape(ShapeContext& c, int sign) {
  TAGFLOW_ASSIGN(PartialShape input, padded_input(c));
  if (!input.has_rank()) return unknown_shape(c);
  const auto paddings = constant_indices(c, 1);
  if (paddings && paddings->size() != size_t(input.rank()) * 2)
    return c.fail("paddings must have two columns");
  for (int i = 0; i < input.rank(); ++i) {
    int64_t dim = PartialShape::kUnknown;
    if (paddings && input.dim_known(i)) {
      const int64_t before = (*paddings)[size_t(i) * 2];
      const int64_t after = (*paddings)[size_t(i) * 2 + 1];
      if (before < 0 || after < 0) return c.fail("a padding is negative");
      const int64_t sum = add_dims(before, after);
      if (sum != PartialShape::kUnknown)
        dim = sign > 0 ? add_dims(input.dim(i), sum)
                       : std::max<int64_t>(PartialShape::kUnknown,
                                           input.dim(i) - sum);
    }
    input.set_dim(i, dim);
  }
  c.set_output(0, std::move(input));
  return {};
}

Status pad_shape(ShapeContext& c) { return padded_shape(c, 1); }
Status mirror_pad_grad_shape(ShapeContext& c) { return padded_shape(c, -1); }

Status reverse_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  return unchanged_shape(c);
}

Status reverse_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape dims, c.with_rank(1, 1));
  if (c.input(0).has_rank() && dims.dim_known(0) &&
      dims.dim(0) != c.input(0).rank())
    return c.fail(fmt::format("{} flags for the shape {}", dims.dim(0),
                              c.input(0).to_string()));
  return unchanged_shape(c);
}

Status reverse_sequence_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t seq_dim, c.attr<int64_t>("seq_dim"));
  TAGFLOW_ASSIGN(const int64_t batch_dim, c.attr<int64_t>("batch_dim"));
  TAGFLOW_ASSIGN(PartialShape lengths, c.with_rank(1, 1));
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return unknown_shape(c);
  if (batch_dim >= input.rank() || seq_dim >= input.rank())
    return c.fail(fmt::format("batch_dim {} or seq_dim {} is outside {}",
                              batch_dim, seq_dim, input.to_string()));
  if (batch_dim >= 0 && input.dim_known(int(batch_dim)) &&
      lengths.dim_known(0) && lengths.dim(0) != input.dim(int(batch_dim)))
    return c.fail(fmt::format("{} lengths for dimension {} of {}",
                              lengths.dim(0), batch_dim, input.to_string()));
  return unchanged_shape(c);
}

// A block op moves `block` values of a spatial dimension into the batch (or the
// depth), or back. The kernel rejects dimensions that are not divisible.
int64_t divide(int64_t dim, int64_t by) {
  return dim < 0 || by <= 0 || dim % by != 0 ? PartialShape::kUnknown
                                             : dim / by;
}

// The common part of both directions. `blocks` and `margins`, pairs of paddings
// or crops, are given if they are known.
Status block_shape(ShapeContext& c, bool to_batch, int num_blocks,
                   const std::optional<Shape::Dims>& blocks,
                   const std::optional<Shape::Dims>& margins) {
  TAGFLOW_ASSIGN(PartialShape shape, c.with_rank_at_least(0, num_blocks + 1));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  if ((blocks && blocks->size() != size_t(num_blocks)) ||
      (margins && margins->size() != size_t(num_blocks) * 2))
    return c.fail("the block shape does not fit its paddings or crops");
  int64_t batch = shape.dim(0);
  for (int i = 0; i < num_blocks; ++i) {
    const int64_t block =
        blocks ? (*blocks)[size_t(i)] : PartialShape::kUnknown;
    if (blocks && block < 1) return c.fail("a block size is not positive");
    int64_t margin = PartialShape::kUnknown;
    if (margins)
      margin =
          add_dims((*margins)[size_t(i) * 2], (*margins)[size_t(i) * 2 + 1]);
    int64_t dim = shape.dim(i + 1);
    if (to_batch) {
      dim = divide(add_dims(dim, margin), block);
      batch = batch < 0 || block < 0 ? PartialShape::kUnknown
                                     : multiply_dims(batch, block);
    } else {
      dim = dim < 0 || block < 0 ? PartialShape::kUnknown
                                 : multiply_dims(dim, block);
      dim = dim < 0 || margin < 0
                ? PartialShape::kUnknown
                : std::max(PartialShape::kUnknown, dim - margin);
      batch = divide(batch, block);
    }
    shape.set_dim(i + 1, dim);
  }
  shape.set_dim(0, batch);
  c.set_output(0, std::move(shape));
  return {};
}

Status block_nd_shape(ShapeContext& c, bool to_batch) {
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(1, 1));
  if (!vector.dim_known(0) || vector.dim(0) >= kMaxRank)
    return unknown_shape(c);
  return block_shape(c, to_batch, int(vector.dim(0)), constant_indices(c, 1),
                     constant_indices(c, 2));
}

Status block_2d_shape(ShapeContext& c, bool to_batch) {
  TAGFLOW_ASSIGN(const int64_t size, c.attr<int64_t>("block_size"));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 4).status());
  return block_shape(c, to_batch, 2, Shape::Dims({size, size}),
                     constant_indices(c, 1));
}

Status space_to_batch_shape(ShapeContext& c) { return block_2d_shape(c, true); }
Status batch_to_space_shape(ShapeContext& c) {
  return block_2d_shape(c, false);
}
Status space_to_batch_nd_shape(ShapeContext& c) {
  return block_nd_shape(c, true);
}
Status batch_to_space_nd_shape(ShapeContext& c) {
  return block_nd_shape(c, false);
}

Status depth_space_shape(ShapeContext& c, bool to_depth) {
  TAGFLOW_ASSIGN(const auto format, c.attr<std::string>("data_format"));
  TAGFLOW_ASSIGN(const int64_t block, c.attr<int64_t>("block_size"));
  if (format == "NCHW_VECT_C") return unknown_shape(c);
  TAGFLOW_ASSIGN(PartialShape shape, c.with_rank(0, 4));
  const int depth = format == "NHWC" ? 3 : 1;
  const int height = format == "NHWC" ? 1 : 2;
  auto grow = [](int64_t dim, int64_t by) {
    return dim < 0 || by < 0 ? PartialShape::kUnknown : multiply_dims(dim, by);
  };
  const int64_t area =
      checked_multiply(block, block).value_or(PartialShape::kUnknown);
  for (int axis : {height, height + 1})
    shape.set_dim(axis, to_depth ? divide(shape.dim(axis), block)
                                 : grow(shape.dim(axis), block));
  shape.set_dim(depth, to_depth ? grow(shape.dim(depth), area)
                                : divide(shape.dim(depth), area));
  c.set_output(0, std::move(shape));
  return {};
}

Status space_to_depth_shape(ShapeContext& c) {
  return depth_space_shape(c, true);
}
Status depth_to_space_shape(ShapeContext& c) {
  return depth_space_shape(c, false);
}

}  // namespace

void register_array_layout_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("InvertPermutation")
                   .input("x: T")
                   .output("y: T")
                   .attr("T: {int32, int64} = int32")
                   .shape(invert_permutation_shape));
  registry.add(OpDefBuilder("Transpose")
                   .inputs({"x: T", "perm: Tperm"})
                   .output("y: T")
                   .attrs({"T: type", "Tperm: {int32, int64} = int32"})
                   .shape(transpose_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("ConjugateTranspose")
                   .inputs({"x: T", "perm: Tperm"})
                   .output("y: T")
                   .attrs({"T: type", "Tperm: {int32, int64} = int32"})
                   .shape(transpose_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("Pad")
                   .inputs({"input: T", "paddings: Tpaddings"})
                   .output("output: T")
                   .attrs({"T: type", "Tpaddings: {int32, int64} = int32"})
                   .shape(pad_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("PadV2")
          .inputs({"input: T", "paddings: Tpaddings", "constant_values: T"})
          .output("output: T")
          .attrs({"T: type", "Tpaddings: {int32, int64} = int32"})
          .shape(pad_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("MirrorPad")
                   .inputs({"input: T", "paddings: Tpaddings"})
                   .output("output: T")
                   .attrs({"T: type", "Tpaddings: {int32, int64} = int32",
                           "mode: {'REFLECT', 'SYMMETRIC'}"})
                   .shape(pad_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("MirrorPadGrad")
                   .inputs({"input: T", "paddings: Tpaddings"})
                   .output("output: T")
                   .attrs({"T: type", "Tpaddings: {int32, int64} = int32",
                           "mode: {'REFLECT', 'SYMMETRIC'}"})
                   .shape(mirror_pad_grad_shape));
  registry.add(
      OpDefBuilder("ReverseV2")
          .inputs({"tensor: T", "axis: Tidx"})
          .output("output: T")
          .attrs(
              {"Tidx: {int32, int64} = int32",
               "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, "
               "bool, "
               "bfloat16, half, float, double, complex64, complex128, string}"})
          .shape(reverse_v2_shape)
          .work(Work::kMove));
  registry.add(
      OpDefBuilder("Reverse")
          .inputs({"tensor: T", "dims: bool"})
          .output("output: T")
          .attr("T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, "
                "bool, "
                "bfloat16, half, float, double, complex64, complex128, string}")
          .shape(reverse_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("ReverseSequence")
                   .inputs({"input: T", "seq_lengths: Tlen"})
                   .output("output: T")
                   .attrs({"seq_dim: int", "batch_dim: int = 0", "T: type",
                           "Tlen: {int32, int64} = int64"})
                   .shape(reverse_sequence_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("Roll")
          .inputs({"input: T", "shift: Tshift", "axis: Taxis"})
          .output("output: T")
          .attrs({"T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"})
          .shape(unchanged_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("SpaceToBatch")
                   .inputs({"input: T", "paddings: Tpaddings"})
                   .output("output: T")
                   .attrs({"T: type", "Tpaddings: {int32, int64} = int32",
                           "block_size: int >= 2"})
                   .shape(space_to_batch_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("SpaceToBatchND")
                   .inputs({"input: T", "block_shape: Tblock_shape",
                            "paddings: Tpaddings"})
                   .output("output: T")
                   .attrs({"T: type", "Tblock_shape: {int32, int64} = int32",
                           "Tpaddings: {int32, int64} = int32"})
                   .shape(space_to_batch_nd_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("BatchToSpace")
                   .inputs({"input: T", "crops: Tidx"})
                   .output("output: T")
                   .attrs({"T: type", "block_size: int >= 2",
                           "Tidx: {int32, int64} = int32"})
                   .shape(batch_to_space_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("BatchToSpaceND")
          .inputs({"input: T", "block_shape: Tblock_shape", "crops: Tcrops"})
          .output("output: T")
          .attrs({"T: type", "Tblock_shape: {int32, int64} = int32",
                  "Tcrops: {int32, int64} = int32"})
          .shape(batch_to_space_nd_shape)
          .work(Work::kMove));
  registry.add(
      OpDefBuilder("SpaceToDepth")
          .input("input: T")
          .output("output: T")
          .attrs({"T: type", "block_size: int >= 2",
                  "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"})
          .shape(space_to_depth_shape)
          .work(Work::kMove));
  registry.add(
      OpDefBuilder("DepthToSpace")
          .input("input: T")
          .output("output: T")
          .attrs({"T: type", "block_size: int >= 2",
                  "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"})
          .shape(depth_to_space_shape)
          .work(Work::kMove));
  registry.add(
      OpDefBuilder("DataFormatDimMap")
          .input("x: T")
          .output("y: T")
          .attrs({"T: {int32, int64} = int32", "src_format: string = 'NHWC'",
                  "dst_format: string = 'NCHW'"})
          .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("DataFormatVecPermute")
          .input("x: T")
          .output("y: T")
          .attrs({"T: {int32, int64} = int32", "src_format: string = 'NHWC'",
                  "dst_format: string = 'NCHW'"})
          .shape(unchanged_shape));
}

}  // namespace tagflow::graph
