// Array ops that reshape, repeat, join, split or reorder tensors, and series of
// numbers.
#include "autodiff/rule.h"
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

// --- Shapes -----------------------------------------------------------------

// Seen as [m0, d0, m1, d1, ...], the copies of an element are along the m's.
void tile_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output shape = r.input_shape(0, r.input_dtype(1));
  const Output pairs = ops::pack(s, {r.input(1), shape}, 1);
  const Output apart = ops::reshape(s, pairs, {-1});
  const Output copies = ops::range(s, 0, ops::size(s, apart), 2);
  const Output sum =
      ops::reduce_sum(s, ops::reshape(s, r.grad(), apart), copies);
  r.set(0, ops::reshape(s, sum, shape));
}

void add_shape_rules(RuleTable& table) {
  table.add({"Reshape", "ExpandDims", "Squeeze"}, [](RuleContext& r) {
    r.set(0, ops::reshape(r.scope(), r.grad(), r.input_shape(0)));
  });
  table.add("Fill", [](RuleContext& r) { r.set_broadcast(1, r.grad()); });
  table.add("Tile", tile_rule);
}

// --- Joins and splits -------------------------------------------------------

// The axis as int32, for ops that do not take int64.
Output index_as_int32(RuleContext& r, int input) {
  if (r.input_dtype(input) == DataType::kInt32) return r.input(input);
  return ops::cast(r.scope(), r.input(input), DataType::kInt32);
}

// The sizes of inputs [first, first + count) along the axis, a constant if
// they are known.
Output sizes_along(RuleContext& r, int first, int count, int axis_input) {
  const Scope& s = r.scope();
  const auto axis = known_index(r, axis_input);
  std::vector<int64_t> sizes;
  for (int i = first; axis && i < first + count; ++i) {
    const PartialShape& shape = r.known_input_shape(i);
    if (!shape.has_rank() || *axis < -shape.rank() || *axis >= shape.rank())
      break;
    const auto at = int(*axis < 0 ? *axis + shape.rank() : *axis);
    if (!shape.dim_known(at)) break;
    sizes.push_back(shape.dim(at));
  }
  if (int(sizes.size()) == count) return r.ints(sizes);
  graph::Inputs shapes;
  for (int i = first; i < first + count; ++i) shapes.add(r.input_shape(i));
  const Output rank = ops::size(s, r.input_shape(first));
  const Output at = ops::floor_mod(s, index_as_int32(r, axis_input), rank);
  return ops::gather(s, ops::pack(s, shapes), at, 1);
}

void concat_rule(RuleContext& r, int first, int axis_input) {
  const int count = r.num_inputs() - 1;
  const graph::OpResult parts =
      r.scope().op("SplitV",
                   {r.grad(), sizes_along(r, first, count, axis_input),
                    index_as_int32(r, axis_input)},
                   {{"num_split", count}});
  for (int i = 0; i < count; ++i) r.set(first + i, parts[i]);
}

// The gradients of all outputs, zeros if there is none.
Outputs all_grads(RuleContext& r) {
  Outputs grads;
  for (int i = 0; i < r.num_outputs(); ++i) grads.push_back(r.grad(i));
  return grads;
}

void split_rule(RuleContext& r, int value, int axis_input) {
  const Outputs grads = all_grads(r);
  r.set(value, grads.size() == 1
                   ? grads[0]
                   : ops::concat(r.scope(), grads, r.input(axis_input)));
}

void add_join_rules(RuleTable& table) {
  table.add("ConcatV2",
            [](RuleContext& r) { concat_rule(r, 0, r.num_inputs() - 1); });
  table.add("Concat", [](RuleContext& r) { concat_rule(r, 1, 0); });
  table.add("Split", [](RuleContext& r) { split_rule(r, 1, 0); });
  table.add("SplitV", [](RuleContext& r) { split_rule(r, 0, 2); });
  table.add("Pack", [](RuleContext& r) {
    const graph::OpResult parts = r.scope().op(
        "Unpack", {r.grad()},
        {{"num", r.num_inputs()}, {"axis", r.attr<int64_t>("axis")}});
    for (int i = 0; i < r.num_inputs(); ++i) r.set(i, parts[i]);
  });
  table.add("Unpack", [](RuleContext& r) {
    r.set(0, r.scope().op("Pack", all_grads(r),
                          {{"axis", r.attr<int64_t>("axis")}}));
  });
  // Each input is one row.
  table.add("ParallelConcat", [](RuleContext& r) {
    const graph::OpResult parts =
        r.scope().op("Split", {0, r.grad()}, {{"num_split", r.num_inputs()}});
    for (int i = 0; i < r.num_inputs(); ++i) r.set(i, parts[i]);
  });
}

// --- Orders -----------------------------------------------------------------

// The inverse of the permutation in input 1, in which negative numbers count
// from the end; constant if that is.
Output inverse_permutation(RuleContext& r) {
  const Scope& s = r.scope();
  const auto known = known_indices(r, 1);
  if (!known) {
    const Output rank = ops::size(s, r.input(1), {r.input_dtype(1)});
    return ops::invert_permutation(s, ops::floor_mod(s, r.input(1), rank));
  }
  const auto count = int64_t(known->size());
  std::vector<int64_t> inverse(known->size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = (*known)[size_t(i)];
    // An invalid permutation fails when the node itself runs.
    if (from >= -count && from < count)
      inverse[size_t(from < 0 ? from + count : from)] = i;
  }
  return r.ints(inverse);
}

void add_reordering_rules(RuleTable& table) {
  // The gradient of a conjugate is conjugated, too.
  table.add({"Transpose", "ConjugateTranspose"}, [](RuleContext& r) {
    r.set(0, r.scope().op(r.node().op(), {r.grad(), inverse_permutation(r)}));
  });
  table.add({"Reverse", "ReverseV2"}, [](RuleContext& r) {
    r.set(0, r.scope().op(r.node().op(), {r.grad(), r.input(1)}));
  });
  table.add("ReverseSequence", [](RuleContext& r) {
    r.set(0, r.scope().op("ReverseSequence", {r.grad(), r.input(1)},
                          {{"seq_dim", r.attr<int64_t>("seq_dim")},
                           {"batch_dim", r.attr<int64_t>("batch_dim")}}));
  });
  table.add("Roll", [](RuleContext& r) {
    const Scope& s = r.scope();
    r.set(0, s.op("Roll", {r.grad(), ops::neg(s, r.input(1)), r.input(2)}));
  });
}

// --- Series -----------------------------------------------------------------

// start + i * delta; the number of elements is constant.
void range_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0)) r.set(0, ops::reduce_sum(s, r.grad()));
  if (!r.wants(2)) return;
  const Output count = ops::reshape(s, r.output_shape(), r.ints({}));
  const Output steps = ops::cast(s, count_to(s, count), r.input_dtype(2));
  r.set(2, ops::reduce_sum(s, ops::mul(s, r.grad(), steps)));
}

// start * (1 - t) + stop * t, for t from 0 to 1.
void lin_space_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output t = s.op(
      "LinSpace", {r.scalar(0, r.grad()), r.scalar(1, r.grad()), r.input(2)});
  if (r.wants(0))
    r.set(0, ops::reduce_sum(s, ops::mul(s, r.grad(), ops::sub(s, 1, t))));
  if (r.wants(1)) r.set(1, ops::reduce_sum(s, ops::mul(s, r.grad(), t)));
}

void add_series_rules(RuleTable& table) {
  table.add("Range", range_rule);
  table.add("LinSpace", lin_space_rule);
}

// --- Ops without a derivative -----------------------------------------------

void add_array_reasons(RuleTable& table) {
  no_gradient(table,
              "ConcatOffset DataFormatDimMap DataFormatVecPermute "
              "InvertPermutation UnravelIndex Where",
              "its results are indices or counts");
  no_gradient(table, "BroadcastArgs Rank Shape ShapeN Size",
              "its result depends on shapes alone");
  no_gradient(table, "Empty OnesLike ZerosLike", "its result is constant");
}

// --- Forward mode -----------------------------------------------------------

void add_array_forward_rules(RuleTable& table) {
  table.add_forward({"Reshape",
                     "ExpandDims",
                     "Squeeze",
                     "Tile",
                     "Transpose",
                     "ConjugateTranspose",
                     "Reverse",
                     "ReverseV2",
                     "ReverseSequence",
                     "Roll",
                     "Slice",
                     "StridedSlice",
                     "Gather",
                     "GatherV2",
                     "GatherNd",
                     "Pad",
                     "MirrorPad",
                     "Diag",
                     "DiagPart",
                     "MatrixDiag",
                     "BatchMatrixDiag",
                     "MatrixDiagPart",
                     "BatchMatrixDiagPart",
                     "MatrixBandPart",
                     "BatchMatrixBandPart",
                     "SpaceToDepth",
                     "DepthToSpace",
                     "SpaceToBatchND",
                     "BatchToSpaceND",
                     "SplitV",
                     "Unpack"},
                    linear<0>);
  table.add_forward({"Fill", "Split"}, linear<1>);
  table.add_forward({"StridedSliceGrad"}, linear<4>);
  table.add_forward({"Pack"},
                    [](ForwardContext& r) { r.set_linear(inputs_from(r, 0)); });
  table.add_forward({"Concat"},
                    [](ForwardContext& r) { r.set_linear(inputs_from(r, 1)); });
  table.add_forward({"ConcatV2"}, [](ForwardContext& r) {
    r.set_linear(inputs_from(r, 0, 1));
  });
}

}  // namespace

void add_array_rules(RuleTable& table) {
  add_shape_rules(table);
  add_join_rules(table);
  add_reordering_rules(table);
  add_series_rules(table);
  add_array_index_rules(table);
  add_array_layout_rules(table);
  add_array_scatter_rules(table);
  add_array_reasons(table);
  add_array_forward_rules(table);
}

}  // namespace tagflow::autodiff
