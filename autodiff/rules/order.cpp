// Series of numbers, and unique values of tensors.
#include "autodiff/rules/array_helpers.h"

namespace tagflow::autodiff {
namespace {

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

// Each weight was added to the count of its value, in its row if values are
// counted row by row. Values from `size` on are not counted. There may be no
// weights, and then there is no gradient.
void bincount_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output size = r.input(1);
  const Output shape = r.output_shape(0, r.input_dtype(1));
  const Output rows = ops::reduce_prod(
      s, ops::strided_slice(s, shape, {0}, {-1}, {1}, {.begin_mask = 1}), 0);
  const Output counts = ops::reshape(s, r.grad(), ops::pack(s, {rows, size}));
  // Values that are not counted gather from a column of zeros.
  const Output padded =
      ops::pad(s, counts, Tensor::of<int32_t>({2, 2}, {0, 0, 0, 1}));
  const Output columns =
      ops::floor_div(s, ops::size(s, r.input(0), {r.input_dtype(1)}),
                     ops::maximum(s, rows, 1));
  const Output values = ops::reshape(s, ops::minimum(s, r.input(0), size),
                                     ops::pack(s, {rows, columns}));
  const Output found =
      ops::reshape(s, ops::gather(s, padded, values, 1, 1), {-1});
  const Output weights = r.input_shape(2);
  const Output count = ops::reduce_prod(s, weights, {0}, {.keep_dims = true});
  r.set(2, ops::reshape(s, ops::slice(s, found, {0}, count), weights));
}

}  // namespace

void add_array_misc_rules(RuleTable& table) {
  table.add("Range", range_rule);
  table.add("LinSpace", lin_space_rule);
  table.add({"Unique", "UniqueWithCounts"},
            [](RuleContext& r) { set_shares(r, r.scope().resolve(0)); });
  table.add({"UniqueV2", "UniqueWithCountsV2"}, unique_along_rule);
  table.add("Bincount", bincount_rule);
  table.add("DenseBincount", [](RuleContext& r) {
    // With binary output the weights do not matter.
    if (!r.attr<bool>("binary_output")) bincount_rule(r);
  });
  // The remaining elements of x, in order.
  table.add("ListDiff", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output places = ops::expand_dims(s, r.output(1), 1);
    const Output shape = r.input_shape(0, places.dtype());
    r.set(0, ops::scatter_nd(s, places, r.grad(), shape));
  });
}

}  // namespace tagflow::autodiff
