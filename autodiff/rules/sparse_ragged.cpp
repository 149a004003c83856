// Ragged tensors, which consist of row splits and values: gradients are by the
// values.
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/sparse_rules.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {
namespace {

// The row numbers, gathered in the same way, give the origin of each row.
void ragged_gather_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const int values = r.num_inputs() - 2;
  graph::Inputs inputs;
  for (int i = 0; i < values; ++i) inputs.add(r.input(i));
  inputs.add(count_to(s, ops::gather(s, r.input_shape(values), 0)));
  inputs.add(r.input(values + 1));
  const graph::OpResult rows =
      s.op("RaggedGather", inputs,
           {{"PARAMS_RAGGED_RANK", values},
            {"OUTPUT_RAGGED_RANK", r.num_outputs() - 1}});
  r.set_slices(values, r.grad(r.num_outputs() - 1), rows[rows.size() - 1]);
}

// The row numbers of the values, laid out in the same way, give the place of
// each row, and -1 for the default value.
void ragged_to_dense_rule(RuleContext& r) {
  const Scope& s = r.scope();
  constexpr int kPartitions = 3;
  const auto from_1 = [&](const Output& shape) {
    return ops::strided_slice(s, shape, {1}, {0}, {1}, {.end_mask = 1});
  };
  const Output shape = r.input_shape(1);
  const Output inner = from_1(shape);
  const Output outer_rank =
      ops::sub(s, ops::size(s, r.output_shape()), ops::size(s, inner));
  const Output outer =
      ops::slice(s, r.output_shape(), {0}, ops::reshape(s, outer_rank, {1}));
  const Output count = ops::gather(s, shape, 0);
  graph::Inputs inputs = {outer, count_to(s, count), -1};
  for (int i = kPartitions; i < r.num_inputs(); ++i) inputs.add(r.input(i));
  const Output layout =
      s.op("RaggedTensorToTensor", inputs,
           {{"num_row_partition_tensors", r.num_inputs() - kPartitions},
            {"row_partition_types",
             r.attr<std::vector<std::string>>("row_partition_types")}});
  const Output places = ops::reshape(s, layout, {-1});
  const Output size = ops::reshape(s, ops::size(s, places), {1});
  const Output rows =
      ops::reshape(s, r.grad(), ops::concat(s, {size, inner}, 0));
  if (r.wants(1)) r.set(1, ops::unsorted_segment_sum(s, rows, places, count));
  if (r.wants(2)) {
    const Output is_default = ops::less(s, places, 0);
    const Output sum =
        ops::reduce_sum(s, zero_unless(s, is_default, rows), {0});
    r.set(2, sum_to_shape(s, sum, r.input_shape(2), inner));
  }
}

// Row i is starts[i] + j * deltas[i]; the number of elements is constant.
void ragged_range_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output splits = r.output(0);
  const Output numbers = ops::cast(
      s, count_to(s, ops::gather(s, r.output_shape(1), 0)), splits.dtype());
  const Output ends = s.op("UpperBound", {ops::expand_dims(s, splits, 0),
                                          ops::expand_dims(s, numbers, 0)});
  const Output rows = ops::sub(s, ops::squeeze(s, ends, {0}), 1);
  const Output count = ops::sub(s, ops::size(s, splits), 1);
  // A scalar is used for every row.
  const auto set_by_rows = [&](int input, const Output& gradient) {
    const Output sums = ops::unsorted_segment_sum(s, gradient, rows, count);
    r.set(input,
          sum_to_shape(s, sums, r.input_shape(input), ops::shape(s, sums)));
  };
  if (r.wants(0)) set_by_rows(0, r.grad(1));
  if (!r.wants(2)) return;
  const Output steps = ops::sub(s, numbers, ops::gather(s, splits, rows));
  set_by_rows(2, ops::mul(s, r.grad(1), ops::cast(s, steps, r.input_dtype(2))));
}

// The gradient of a variant holds those of its values, in the same rows.
void ragged_to_variant_rule(RuleContext& r) {
  const int values = r.num_inputs() - 1;
  const Output splits =
      values > 0 ? r.input(0)
                 : ops::constant(r.scope(), Tensor::scalar(int64_t{0}));
  r.set(values, r.scope().op("RaggedTensorToVariantGradient",
                             {r.grad(), splits, r.input_shape(values)},
                             {{"Tvalues", r.input_dtype(values)}}));
}

void ragged_from_variant_rule(RuleContext& r) {
  const PartialShape& encoded = r.known_input_shape(0);
  const int levels = r.num_outputs() - 1;
  if (encoded.has_rank() && encoded.rank() > 1)
    return r.fail("only scalars and vectors of ragged tensors have one");
  const bool is_batch = encoded.has_rank() ? encoded.rank() == 1 : levels > 0;
  graph::Inputs inputs;
  for (int level = 0; level < levels; ++level) inputs.add(r.output(level));
  inputs.add(r.grad(levels));
  AttrMap attrs = {{"RAGGED_RANK", levels}, {"batched_input", is_batch}};
  if (levels == 0) attrs.emplace("Tsplits", DataType::kInt64);
  r.set(0, r.scope().op("RaggedTensorToVariant", inputs, attrs));
}

}  // namespace

void add_sparse_ragged_rules(RuleTable& table) {
  table.add("RaggedGather", ragged_gather_rule);
  table.add("RaggedTensorToTensor", ragged_to_dense_rule);
  // The values, all of them, as a vector.
  table.add("RaggedTensorToSparse", [](RuleContext& r) {
    const int values = r.num_inputs() - 1;
    r.set(values, ops::reshape(r.scope(), r.grad(1), r.input_shape(values)));
  });
  table.add("RaggedRange", ragged_range_rule);
  table.add("RaggedTensorToVariant", ragged_to_variant_rule);
  table.add("RaggedTensorFromVariant", ragged_from_variant_rule);
  table.add_none({"RaggedTensorToVariantGradient"},
                 "second derivatives of variants are not implemented");
}

}  // namespace tagflow::autodiff
