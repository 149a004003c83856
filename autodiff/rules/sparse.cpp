// Sparse tensors, which consist of indices, values and a shape: gradients are
// by the values. Ops that only move elements run once more on the numbers of
// the elements instead of their values, which gives the order.
#include "autodiff/rule.h"
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/no_gradient.h"
#include "autodiff/rules/sparse_rules.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {
namespace {

// The number of elements of an input, a vector.
Output element_count(RuleContext& r, int input) {
  return ops::gather(r.scope(), r.input_shape(input), 0);
}

// Undoes the order `order`.
Output in_old_order(const Scope& s, const Output& grad, const Output& order) {
  return ops::gather(s, grad, ops::invert_permutation(s, order));
}

void reorder_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const graph::OpResult moved =
      s.op("SparseReorder",
           {r.input(0), count_to(s, element_count(r, 1)), r.input(2)});
  r.set(1, in_old_order(s, r.grad(1), moved[1]));
}

// Inputs: indices, values and shapes of the parts.
void sparse_concat_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const int parts = r.num_inputs() / 3;
  graph::Inputs inputs, sizes;
  for (int i = 0; i < parts; ++i) {
    inputs.add(r.input(i));
    sizes.add(r.input_shape(parts + i));
  }
  const Output counts = ops::concat(s, sizes, 0);
  const AttrMap split = {{"num_split", parts}};
  const Output numbers = count_to(s, ops::reduce_sum(s, counts, 0));
  const graph::OpResult numbered = s.op("SplitV", {numbers, counts, 0}, split);
  for (int i = 0; i < parts; ++i) inputs.add(numbered[i]);
  for (int i = 0; i < parts; ++i) inputs.add(r.input(2 * parts + i));
  const graph::OpResult moved =
      s.op("SparseConcat", inputs,
           {{"concat_dim", r.attr<int64_t>("concat_dim")}, {"N", parts}});
  const graph::OpResult grads =
      s.op("SplitV", {in_old_order(s, r.grad(1), moved[1]), counts, 0}, split);
  for (int i = 0; i < parts; ++i) r.set(parts + i, grads[i]);
}

// Outputs: indices, values and shapes of the parts, which have all elements.
void sparse_split_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const int parts = r.num_outputs() / 3;
  const graph::OpResult moved = s.op(
      "SparseSplit",
      {r.input(0), r.input(1), count_to(s, element_count(r, 2)), r.input(3)},
      {{"num_split", parts}});
  Outputs order, grads;
  for (int i = parts; i < 2 * parts; ++i) {
    order.push_back(moved[i]);
    grads.push_back(r.grad(i));
  }
  r.set(2, in_old_order(s, join_rows(s, grads), join_rows(s, order)));
}

// --- Parts ------------------------------------------------------------------

void add_part_rules(RuleTable& table) {
  table.add("SparseSlice", [](RuleContext& r) {
    r.set(1, r.scope().op("SparseSliceGrad",
                          {r.grad(1), r.input(0), r.input(3), r.output(0)}));
  });
  table.add("SparseSliceGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output count = element_count(r, 0);
    const Output from =
        s.op("SparseSliceGrad", {ops::add(s, count_to(s, count), 1), r.input(1),
                                 r.input(2), r.input(3)});
    r.set(0,
          ops::unsorted_segment_sum(s, r.grad(), ops::sub(s, from, 1), count));
  });
  table.add("SparseFillEmptyRows", [](RuleContext& r) {
    const graph::OpResult grads =
        r.scope().op("SparseFillEmptyRowsGrad", {r.output(3), r.grad(1)});
    r.set(1, grads[0]);
    r.set(3, grads[1]);
  });
  table.add("SparseFillEmptyRowsGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output filled = ops::fill(s, r.input_shape(1), r.grad(1));
    r.set(1, s.op("TensorScatterUpdate",
                  {filled, ops::expand_dims(s, r.input(0), 1), r.grad(0)}));
  });
}

// --- Dense tensors ----------------------------------------------------------

// The indices as a matrix with a row for each; they may be a vector or a
// scalar, along one dimension.
Output index_matrix(RuleContext& r, int input, const Output& rank) {
  const Scope& s = r.scope();
  const PartialShape& known = r.known_input_shape(input);
  if (known.has_rank() && known.rank() == 2) return r.input(input);
  return ops::reshape(
      s, r.input(input),
      ops::concat(s, {r.ints({-1}), ops::reshape(s, rank, {1})}, 0));
}

// If indices repeat, the last one counts; a node that validates them rejects
// repeated ones. A single value may be used for all.
void to_dense_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output rank = ops::size(s, r.output_shape());
  if (r.wants(2)) {
    const Output places = index_matrix(r, 0, rank);
    Output grad = ops::gather_nd(s, r.grad(), places);
    if (!r.attr<bool>("validate_indices"))
      grad = zero_unless(s, last_writes(s, places, r.output_shape()), grad);
    const PartialShape& known = r.known_input_shape(2);
    const bool is_vector = known.has_rank() && known.rank() == 1;
    r.set(2, is_vector ? grad
                       : sum_to_shape(s, grad, r.input_shape(2),
                                      ops::shape(s, grad)));
  }
  if (r.wants(3)) {
    const Output is_default =
        s.op("SparseToDense", {r.input(0), r.input(1), false, true},
             {{"validate_indices", false}});
    r.set(3, ops::reduce_sum(s, zero_unless(s, is_default, r.grad())));
  }
}

}  // namespace

void add_sparse_rules(RuleTable& table) {
  table.add("SparseReorder", reorder_rule);
  table.add("SparseConcat", sparse_concat_rule);
  table.add("SparseSplit", sparse_split_rule);
  add_part_rules(table);
  table.add("SparseToDense", to_dense_rule);
  table.add("SparseTensorDenseAdd", [](RuleContext& r) {
    r.set(3, r.grad());
    if (r.wants(1)) r.set(1, ops::gather_nd(r.scope(), r.grad(), r.input(0)));
  });
  no_gradient(table, "SparseReshape", "its result depends on shapes alone");
  no_gradient(table,
              "DeserializeManySparse DeserializeSparse SerializeManySparse "
              "SerializeSparse",
              "nothing leads through the form of strings or variants");
  no_gradient(table,
              "AddManySparseToTensorsMap AddSparseToTensorsMap "
              "TakeManySparseFromTensorsMap",
              "a map may have got its tensors in any step");
  add_sparse_math_rules(table);
  add_sparse_ragged_rules(table);
}

}  // namespace tagflow::autodiff
