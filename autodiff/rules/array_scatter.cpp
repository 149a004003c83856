// Array ops that write elements to given places of a tensor. If several are
// written to one place the last one counts, and has the gradient.
#include "autodiff/rules/array_helpers.h"

namespace tagflow::autodiff {
namespace {

// The handling of indices out of range, if these are not an error.
AttrMap policy_of(const RuleContext& r) {
  const auto policy = r.attr<std::string>("bad_indices_policy");
  if (policy != "IGNORE") return {};
  return {{"bad_indices_policy", policy}};
}

// The gradient of updates that were added to existing elements.
void set_added(RuleContext& r, int indices, int updates) {
  if (!r.wants(updates)) return;
  r.set(updates, r.scope().op("GatherNd", {r.grad(), index_input(r, indices)},
                              policy_of(r)));
}

// Of rows written at `places`, a matrix, of a tensor of output 0's shape: those
// that were not overwritten, and zeros for others.
Output kept_rows(RuleContext& r, const Output& rows, const Output& places,
                 const AttrMap& policy = {}) {
  const Scope& s = r.scope();
  const PartialShape& known = places.shape();
  if (known.has_rank() && known.dim(0) == 1) return rows;
  return zero_unless(s, last_writes(s, places, r.output_shape(), policy), rows);
}

void scatter_update_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const AttrMap policy = policy_of(r);
  const Output indices = index_input(r, 1);
  if (r.wants(0))
    r.set(0, s.op("TensorScatterUpdate",
                  {r.grad(), indices, r.zeros_like_input(2)}, policy));
  if (!r.wants(2)) return;
  const PartialShape& known = r.known_input_shape(1);
  Output places = indices;
  if (!known.has_rank() || known.rank() != 2) {
    const Output depth = ops::strided_slice(s, ops::shape(s, indices), {-1},
                                            {0}, {1}, {.end_mask = 1});
    places = ops::reshape(s, indices, ops::concat(s, {r.ints({-1}), depth}, 0));
  }
  const Output rows = s.op("GatherNd", {r.grad(), places}, policy);
  r.set(2,
        ops::reshape(s, kept_rows(r, rows, places, policy), r.input_shape(2)));
}

// Shared equally by all that have the largest, or smallest, value of a place.
void scatter_extreme_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const AttrMap policy = policy_of(r);
  const Output indices = r.input(1);
  const auto pick = [&](const Output& from) -> Output {
    return s.op("GatherNd", {from, indices}, policy);
  };
  const Output was = ops::equal(s, r.input(0), r.output());
  const Output is = ops::equal(s, r.input(2), pick(r.output()));
  const DataType dtype = r.input_dtype(0);
  const Output ties = s.op(
      "TensorScatterAdd",
      {ops::cast(s, was, dtype), indices, ops::cast(s, is, dtype)}, policy);
  const Output share = ops::real_div(s, r.grad(), ties);
  if (r.wants(0)) r.set(0, zero_unless(s, was, share));
  if (r.wants(2)) r.set(2, zero_unless(s, is, pick(share)));
}

void add_scatter_rules(RuleTable& table) {
  table.add("ScatterNd", [](RuleContext& r) { set_added(r, 0, 1); });
  table.add({"TensorScatterAdd", "ScatterNdNonAliasingAdd"},
            [](RuleContext& r) {
              r.set(0, r.grad());
              set_added(r, 1, 2);
            });
  table.add("TensorScatterSub", [](RuleContext& r) {
    const Scope& s = r.scope();
    r.set(0, r.grad());
    if (!r.wants(2)) return;
    r.set(2,
          s.op("GatherNd", {ops::neg(s, r.grad()), r.input(1)}, policy_of(r)));
  });
  table.add("TensorScatterUpdate", scatter_update_rule);
  table.add({"TensorScatterMax", "TensorScatterMin"}, scatter_extreme_rule);
}

// --- Rows -------------------------------------------------------------------

// Inputs [0, n) are indices, [n, 2n) the rows for each.
void stitch_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const int count = r.num_inputs() / 2;
  Outputs all;
  graph::Inputs sizes;
  for (int i = 0; i < count; ++i) {
    all.push_back(ops::reshape(s, r.input(i), {-1}));
    sizes.add(ops::size(s, all[size_t(i)]));
  }
  const Output places = join_rows(s, all);
  const Output rows = ops::gather(s, r.grad(), places);
  const Output kept = kept_rows(r, rows, ops::expand_dims(s, places, 1));
  const graph::OpResult parts =
      s.op("SplitV", {kept, ops::pack(s, sizes), 0}, {{"num_split", count}});
  for (int i = count; i < 2 * count; ++i)
    r.set(i, ops::reshape(s, parts[i - count], r.input_shape(i)));
}

// The rows of the indices, which count modulo the number of rows.
Output rows_meant(RuleContext& r) {
  const Scope& s = r.scope();
  const Output rows = ops::gather(s, r.input_shape(0), 0);
  return ops::floor_mod(s, r.input(1), rows);
}

void add_row_rules(RuleTable& table) {
  table.add({"DynamicStitch", "ParallelDynamicStitch"}, stitch_rule);
  table.add("InplaceUpdate", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(0))
      r.set(0, s.op("InplaceUpdate",
                    {r.grad(), r.input(1), r.zeros_like_input(2)}));
    if (!r.wants(2)) return;
    const Output places = rows_meant(r);
    const Output rows = ops::gather(s, r.grad(), places);
    r.set(2, kept_rows(r, rows, ops::expand_dims(s, places, 1)));
  });
  table.add("InplaceAdd", [](RuleContext& r) {
    r.set(0, r.grad());
    if (r.wants(2)) r.set(2, ops::gather(r.scope(), r.grad(), rows_meant(r)));
  });
  table.add("InplaceSub", [](RuleContext& r) {
    const Scope& s = r.scope();
    r.set(0, r.grad());
    if (r.wants(2))
      r.set(2, ops::gather(s, ops::neg(s, r.grad()), rows_meant(r)));
  });
}

}  // namespace

void add_array_scatter_rules(RuleTable& table) {
  add_scatter_rules(table);
  add_row_rules(table);
}

}  // namespace tagflow::autodiff
