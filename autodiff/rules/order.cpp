// The largest elements, and different values, of a tensor.
#include "autodiff/rule.h"
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/no_gradient.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {
namespace {

// Gathers the columns that the indices name, row by row.
void top_k_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output shape = r.input_shape(0, DataType::kInt64);
  const Output last = ops::sub(s, ops::size(s, shape, {DataType::kInt64}), 1);
  r.set(0, gather_gradient(s, r.grad(), r.output(1), shape, {last, last}));
}

// The gradient is shared equally among equal elements of a row.
void nth_element_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output is_it =
      ops::equal(s, r.input(0), ops::expand_dims(s, r.output(), -1));
  const Output hits = ops::cast(s, is_it, r.input_dtype(0));
  const Output count = ops::reduce_sum(s, hits, {-1}, {.keep_dims = true});
  const Output grad = ops::expand_dims(s, r.grad(), -1);
  r.set(0, ops::mul(s, hits, ops::real_div(s, grad, count)));
}

// Equal elements share the gradient of their value equally. Elements are slices
// of input 0 along the axis, a scalar.
void set_shares(RuleContext& r, const Output& axis) {
  const Scope& s = r.scope();
  const Output number = r.output(1);
  const Output grad = r.grad();
  const Output shape = r.output_shape();
  const Output values = ops::gather(s, shape, axis);
  const Output ones = ops::fill(s, ops::shape(s, number), r.scalar(1, grad));
  const Output counts = ops::unsorted_segment_sum(s, ones, number, values);
  const Output is_axis = ops::equal(s, count_to(s, ops::size(s, shape)), axis);
  const Output along = ops::select(s, is_axis, shape, 1);
  const Output share = ops::real_div(s, grad, ops::reshape(s, counts, along));
  r.set(0, ops::gather(s, share, number, axis));
}

// Input 1 may be empty: then input 0 is a vector.
void unique_along_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output rank = ops::size(s, r.input_shape(0));
  const Output axis = ops::cast(s, r.input(1), DataType::kInt32);
  set_shares(r, ops::reduce_sum(s, ops::floor_mod(s, axis, rank), 0));
}

}  // namespace

void add_order_rules(RuleTable& table) {
  table.add({"TopK", "TopKV2"}, top_k_rule);
  table.add("NthElement", nth_element_rule);
  table.add({"Unique", "UniqueWithCounts"},
            [](RuleContext& r) { set_shares(r, r.scope().resolve(0)); });
  table.add({"UniqueV2", "UniqueWithCountsV2"}, unique_along_rule);
  // The remaining elements of x, in order.
  table.add("ListDiff", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output places = ops::expand_dims(s, r.output(1), 1);
    const Output shape = r.input_shape(0, places.dtype());
    r.set(0, ops::scatter_nd(s, places, r.grad(), shape));
  });
  no_gradient(table, "Bucketize", "its result is constant but for jumps");
  no_gradient(table, "InTopK InTopKV2", "its result is true or false");
  no_gradient(table, "LowerBound UpperBound",
              "its results are indices or counts");
}

}  // namespace tagflow::autodiff
