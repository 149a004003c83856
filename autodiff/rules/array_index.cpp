// Array ops that pick elements: slices, gathers, partitions.
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/broadcast.h"

namespace tagflow::autodiff {
namespace {

// --- Slices -----------------------------------------------------------------

Output index_vector(const Scope& s, const std::vector<int64_t>& values,
                    DataType dtype) {
  const Tensor wide = Tensor::of<int64_t>({int64_t(values.size())}, values);
  auto tensor = graph::weak_to_dtype(wide, dtype);
  return tensor.ok() ? ops::constant(s, *std::move(tensor)) : Output();
}

// Known values become constants, so that shapes of higher gradients are known.
void slice_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const DataType dtype = r.input_dtype(1);
  const Output begin = r.input(1);
  const auto known = known_indices(r, 1);
  const PartialShape& shape = r.known_output_shape();
  Output end, steps;
  if (known && shape.fully_known() && int(known->size()) == shape.rank()) {
    std::vector<int64_t> ends = *known;
    for (size_t i = 0; i < ends.size(); ++i) ends[i] += shape.dim(int(i));
    end = index_vector(s, ends, dtype);
    steps = index_vector(s, std::vector<int64_t>(ends.size(), 1), dtype);
  } else {
    end = ops::add(s, begin, r.output_shape(0, dtype));
    steps = ops::ones_like(s, begin);
  }
  r.set(0, ops::strided_slice_grad(s, r.input_shape(0, dtype), begin, end,
                                   steps, r.grad()));
}

ops::StridedSliceMasks masks_of(const RuleContext& r) {
  return {.begin_mask = r.attr<int64_t>("begin_mask"),
          .end_mask = r.attr<int64_t>("end_mask"),
          .ellipsis_mask = r.attr<int64_t>("ellipsis_mask"),
          .new_axis_mask = r.attr<int64_t>("new_axis_mask"),
          .shrink_axis_mask = r.attr<int64_t>("shrink_axis_mask")};
}

// The node's slice, applied to its gradient.
Output slice_of_grad(RuleContext& r) {
  return ops::strided_slice(r.scope(), r.grad(), r.input(1), r.input(2),
                            r.input(3), masks_of(r));
}

void strided_slice_rule(RuleContext& r) {
  const Output begin = index_input(r, 1);
  r.set(0, ops::strided_slice_grad(r.scope(), r.input_shape(0, begin.dtype()),
                                   begin, index_input(r, 2), index_input(r, 3),
                                   r.grad(), masks_of(r)));
}

// Overwritten elements have no gradient. The value may have been broadcast to
// the slice.
void slice_update_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0))
    r.set(0, s.op("TensorStridedSliceUpdate",
                  {r.grad(), r.input(1), r.input(2), r.input(3),
                   r.scalar(0, r.grad())},
                  ops::to_attrs(masks_of(r))));
  if (!r.wants(4)) return;
  const Output slice = slice_of_grad(r);
  const PartialShape& value = r.known_input_shape(4);
  const bool is_same = value.fully_known() && value == slice.shape();
  r.set(4, is_same ? slice
                   : sum_to_shape(s, slice, r.input_shape(4),
                                  ops::shape(s, slice)));
}

void add_slice_rules(RuleTable& table) {
  table.add("Slice", slice_rule);
  table.add("StridedSlice", strided_slice_rule);
  table.add("StridedSliceGrad",
            [](RuleContext& r) { r.set(4, slice_of_grad(r)); });
  table.add("TensorStridedSliceUpdate", slice_update_rule);
}

// --- Gathers ----------------------------------------------------------------

void gather_v2_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const auto given = r.attr<int64_t>("batch_dims");
  const auto axis = known_index(r, 2);
  if (given == 0 && axis == 0) return set_gathered_rows(r);
  const Output shape = r.input_shape(0, DataType::kInt64);
  const Output rank = ops::size(s, shape, {DataType::kInt64});
  Output batch_dims = ops::constant(s, given);
  if (given < 0) {
    const Output indices = r.input_shape(1, DataType::kInt64);
    batch_dims =
        ops::add(s, ops::size(s, indices, {DataType::kInt64}), batch_dims);
  }
  const Output at = ops::cast(s, r.input(2), DataType::kInt64);
  r.set(0, gather_gradient(s, r.grad(), r.input(1), shape,
                           {ops::floor_mod(s, at, rank), batch_dims}));
}

void add_gather_rules(RuleTable& table) {
  table.add("Gather", set_gathered_rows);
  table.add("GatherV2", gather_v2_rule);
  table.add("GatherNd", [](RuleContext& r) {
    const auto policy = r.attr<std::string>("bad_indices_policy");
    set_gathered_vectors(r, policy == "IGNORE"
                                ? AttrMap{{"bad_indices_policy", policy}}
                                : AttrMap{});
  });
}

// --- Sums and partitions ----------------------------------------------------

void one_hot_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output is_on = ops::one_hot(s, r.input(0), r.input(1), true, false,
                                    int(r.attr<int64_t>("axis")));
  if (r.wants(2)) r.set(2, ops::reduce_sum(s, zero_unless(s, is_on, r.grad())));
  if (r.wants(3)) r.set(3, ops::reduce_sum(s, zero_where(s, is_on, r.grad())));
}

// The row numbers, partitioned in the same way, give the origin of each row.
void dynamic_partition_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const int count = r.num_outputs();
  const Output shape = r.input_shape(1);
  const Output numbers = count_to(s, ops::reduce_prod(s, shape, 0));
  const graph::OpResult parts =
      s.op("DynamicPartition", {ops::reshape(s, numbers, shape), r.input(1)},
           {{"num_partitions", count}});
  Outputs from, grads;
  for (int i = 0; i < count; ++i) {
    from.push_back(parts[i]);
    grads.push_back(r.grad(i));
  }
  const Output back = ops::invert_permutation(s, join_rows(s, from));
  r.set(0, ops::reshape(s, ops::gather(s, join_rows(s, grads), back),
                        r.input_shape(0)));
}

}  // namespace

void add_array_index_rules(RuleTable& table) {
  add_slice_rules(table);
  add_gather_rules(table);
  table.add("OneHot", one_hot_rule);
  table.add("DynamicPartition", dynamic_partition_rule);
}

}  // namespace tagflow::autodiff
