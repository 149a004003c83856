// Array ops for paddings, blocks and diagonals.
#include "autodiff/rules/array_helpers.h"

namespace tagflow::autodiff {
namespace {

// --- Paddings ---------------------------------------------------------------

void set_unpadded(RuleContext& r) {
  if (!r.wants(0)) return;
  const Scope& s = r.scope();
  const Output begin = ops::unpack(s, r.input(1), 2, 1)[0];
  r.set(0, ops::slice(s, r.grad(), begin, r.input_shape(0, r.input_dtype(1))));
}

void pad_value_rule(RuleContext& r) {
  const Scope& s = r.scope();
  set_unpadded(r);
  if (!r.wants(2)) return;
  const Output inside = ops::fill(s, r.input_shape(0), false);
  const Output is_padding = s.op("PadV2", {inside, r.input(1), true});
  r.set(2, ops::reduce_sum(s, zero_unless(s, is_padding, r.grad())));
}

// MirrorPadGrad sums the copies that MirrorPad makes: each is the gradient of
// the other.
void set_by_twin(RuleContext& r, std::string_view twin) {
  r.set(0, r.scope().op(twin, {r.grad(), r.input(1)},
                        {{"mode", r.attr<std::string>("mode")}}));
}

void add_padding_rules(RuleTable& table) {
  table.add("Pad", set_unpadded);
  table.add("PadV2", pad_value_rule);
  table.add("MirrorPad",
            [](RuleContext& r) { set_by_twin(r, "MirrorPadGrad"); });
  table.add("MirrorPadGrad",
            [](RuleContext& r) { set_by_twin(r, "MirrorPad"); });
}

// --- Blocks -----------------------------------------------------------------

void set_by_blocks(RuleContext& r, std::string_view inverse) {
  r.set(0, r.scope().op(inverse, {r.grad(), r.input(1)},
                        {{"block_size", r.attr<int64_t>("block_size")}}));
}

void set_by_channels(RuleContext& r, std::string_view inverse) {
  r.set(0, r.scope().op(inverse, {r.grad()},
                        {{"block_size", r.attr<int64_t>("block_size")},
                         {"data_format", r.attr<std::string>("data_format")}}));
}

// Where one pads the other crops, and so each is the gradient of the other.
void add_block_rules(RuleTable& table) {
  table.add("SpaceToBatch",
            [](RuleContext& r) { set_by_blocks(r, "BatchToSpace"); });
  table.add("BatchToSpace",
            [](RuleContext& r) { set_by_blocks(r, "SpaceToBatch"); });
  table.add("SpaceToBatchND", [](RuleContext& r) {
    r.set(0,
          r.scope().op("BatchToSpaceND", {r.grad(), r.input(1), r.input(2)}));
  });
  table.add("BatchToSpaceND", [](RuleContext& r) {
    r.set(0,
          r.scope().op("SpaceToBatchND", {r.grad(), r.input(1), r.input(2)}));
  });
  table.add("SpaceToDepth",
            [](RuleContext& r) { set_by_channels(r, "DepthToSpace"); });
  table.add("DepthToSpace",
            [](RuleContext& r) { set_by_channels(r, "SpaceToDepth"); });
}

// --- Diagonals --------------------------------------------------------------

// The alignment of diagonals of different lengths; ops of version 2, which lack
// the attribute, align them to the left.
AttrMap alignment_of(const RuleContext& r) {
  const std::string align = r.node().op_def().find_attr("align") == nullptr
                                ? "LEFT_LEFT"
                                : r.attr<std::string>("align");
  return {{"align", align}};
}

// Zeros for all diagonals except those in the gradient.
Output unpacked_grad(RuleContext& r, const graph::Input& k) {
  const Scope& s = r.scope();
  const Output size =
      ops::strided_slice(s, r.input_shape(0), {-2}, {0}, {1}, {.end_mask = 1});
  const Outputs sizes = ops::unpack(s, size, 2);
  return s.op("MatrixDiagV3",
              {r.grad(), k, sizes[0], sizes[1], r.scalar(0, r.grad())},
              alignment_of(r));
}

void matrix_diag_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const AttrMap align = alignment_of(r);
  if (r.wants(0))
    r.set(0, s.op("MatrixDiagPartV3",
                  {r.grad(), r.input(1), r.scalar(0, r.grad())}, align));
  if (!r.wants(4)) return;
  const Output padded = s.op(
      "MatrixSetDiagV3", {r.grad(), r.zeros_like_input(0), r.input(1)}, align);
  r.set(4, ops::reduce_sum(s, padded));
}

void matrix_diag_part_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0)) r.set(0, unpacked_grad(r, r.input(1)));
  if (!r.wants(2)) return;
  const Output inside = ops::fill(s, r.input_shape(0), false);
  const Output is_padding =
      s.op("MatrixDiagPartV3", {inside, r.input(1), true}, alignment_of(r));
  r.set(2, ops::reduce_sum(s, zero_unless(s, is_padding, r.grad())));
}

void matrix_set_diag_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const graph::Input k =
      r.num_inputs() == 3 ? graph::Input(r.input(2)) : graph::Input(0);
  const AttrMap align = alignment_of(r);
  if (r.wants(0))
    r.set(0,
          s.op("MatrixSetDiagV3", {r.grad(), r.zeros_like_input(1), k}, align));
  if (r.wants(1))
    r.set(1, s.op("MatrixDiagPartV3", {r.grad(), k, r.scalar(0, r.grad())},
                  align));
}

void add_diagonal_rules(RuleTable& table) {
  table.add("Diag", [](RuleContext& r) {
    r.set(0, r.scope().op("DiagPart", {r.grad()}));
  });
  table.add("DiagPart",
            [](RuleContext& r) { r.set(0, r.scope().op("Diag", {r.grad()})); });
  table.add({"MatrixDiag", "BatchMatrixDiag"}, [](RuleContext& r) {
    r.set(0, r.scope().op("MatrixDiagPart", {r.grad()}));
  });
  table.add({"MatrixDiagPart", "BatchMatrixDiagPart"},
            [](RuleContext& r) { r.set(0, unpacked_grad(r, 0)); });
  table.add({"MatrixDiagV2", "MatrixDiagV3"}, matrix_diag_rule);
  table.add({"MatrixDiagPartV2", "MatrixDiagPartV3"}, matrix_diag_part_rule);
  table.add({"MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2",
             "MatrixSetDiagV3"},
            matrix_set_diag_rule);
  table.add({"MatrixBandPart", "BatchMatrixBandPart"}, [](RuleContext& r) {
    r.set(0,
          r.scope().op("MatrixBandPart", {r.grad(), r.input(1), r.input(2)}));
  });
}

}  // namespace

void add_array_layout_rules(RuleTable& table) {
  add_padding_rules(table);
  add_block_rules(table);
  add_diagonal_rules(table);
}

}  // namespace tagflow::autodiff
