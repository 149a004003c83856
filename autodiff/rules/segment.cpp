// Reductions of rows by segments.
#include <algorithm>
#include <string>

#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/forward.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {
namespace {

// `x` with dimensions of size 1 appended until it has as many as the data, to
// broadcast to it; `shape` is its own shape, or {-1} of a vector.
Output with_data_rank(RuleContext& r, const Output& x, const Output& shape) {
  const Scope& s = r.scope();
  const PartialShape& data = r.known_input_shape(0);
  const PartialShape own = x.shape();
  Output ones;
  if (data.has_rank() && own.has_rank()) {
    const int missing = data.rank() - own.rank();
    if (missing <= 0) return x;
    ones = r.ints(std::vector<int64_t>(size_t(missing), 1));
  } else {
    const Output missing =
        ops::sub(s, ops::size(s, r.input_shape(0)), ops::rank(s, x));
    ones = ops::fill(s, ops::expand_dims(s, missing, 0), 1);
  }
  return ops::reshape(s, x, ops::concat(s, {shape, ones}, 0));
}

// --- Sorted ids -------------------------------------------------------------

void segment_mean_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output ids = r.input(1);
  // Segments without rows do not affect the result, but must not divide by 0.
  const Output counts =
      ops::maximum(s, ops::segment_sum(s, ops::ones_like(s, ids), ids), 1);
  const Output divisors =
      with_data_rank(r, ops::cast(s, counts, r.input_dtype(0)), r.ints({-1}));
  r.set(0, ops::gather(s, ops::real_div(s, r.grad(), divisors), ids));
}

void segment_prod_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output ids = r.input(1);
  const Output others = products_of_others(
      s, r.conj(r.input(0)), ops::gather(s, r.conj(r.output()), ids),
      [&](const Output& x) {
        return ops::gather(s, ops::segment_sum(s, x, ids), ids);
      },
      [&](const Output& x) {
        return ops::gather(s, s.op("SegmentProd", {x, ids}), ids);
      });
  r.set(0, ops::mul(s, ops::gather(s, r.grad(), ids), others));
}

// Elements that are equal to the extremum of their segment share its gradient.
void segment_extreme_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output ids = r.input(1);
  const Output chosen =
      ops::equal(s, r.input(0), ops::gather(s, r.output(), ids));
  const Output counts =
      ops::segment_sum(s, ops::cast(s, chosen, r.input_dtype(0)), ids);
  const Output shares = ops::real_div(s, r.grad(), ops::maximum(s, counts, 1));
  r.set(0, ops::select(s, chosen, ops::gather(s, shares, ids), 0));
}

void add_sorted_segment_rules(RuleTable& table) {
  table.add("SegmentSum", [](RuleContext& r) {
    r.set(0, ops::gather(r.scope(), r.grad(), r.input(1)));
  });
  table.add("SegmentMean", segment_mean_rule);
  table.add("SegmentProd", segment_prod_rule);
  table.add({"SegmentMax", "SegmentMin"}, segment_extreme_rule);
}

// --- Ids in any order -------------------------------------------------------

// The rows of the data that belong to segments: those with negative ids do not.
class UnsortedRows {
 public:
  explicit UnsortedRows(RuleContext& r)
      : r_(r),
        ids_(r.input(1)),
        rows_(ops::maximum(r.scope(), ids_, 0)),
        is_member_(with_data_rank(r, ops::greater_equal(r.scope(), ids_, 0),
                                  ids_shape(r))) {}

  // A bool for each row, broadcast to the data.
  const Output& is_member() const { return is_member_; }
  // For each row the value of its segment, or an arbitrary one if it has
  // none.
  Output of_segments(const Output& x) const {
    return ops::gather(r_.scope(), x, rows_);
  }
  Output reduce(std::string_view op, const Output& x) const {
    return r_.scope().op(op, {x, ids_, r_.input(2)});
  }
  // Zero if there is no segment.
  void set(const Output& gradient) const {
    r_.set(0, ops::select(r_.scope(), is_member_, gradient, 0));
  }

 private:
  static Output ids_shape(RuleContext& r) {
    const PartialShape& known = r.known_input_shape(1);
    const bool is_vector = known.has_rank() && known.rank() == 1;
    return is_vector ? r.ints({-1}) : r.input_shape(1);
  }

  RuleContext& r_;
  Output ids_, rows_, is_member_;
};

void unsorted_prod_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const UnsortedRows rows(r);
  const Output others = products_of_others(
      s, r.conj(r.input(0)), rows.of_segments(r.conj(r.output())),
      [&](const Output& x) {
        return rows.of_segments(rows.reduce("UnsortedSegmentSum", x));
      },
      [&](const Output& x) {
        return rows.of_segments(rows.reduce("UnsortedSegmentProd", x));
      });
  rows.set(ops::mul(s, rows.of_segments(r.grad()), others));
}

void unsorted_extreme_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const UnsortedRows rows(r);
  const Output chosen =
      ops::logical_and(s, rows.is_member(),
                       ops::equal(s, r.input(0), rows.of_segments(r.output())));
  const Output counts =
      rows.reduce("UnsortedSegmentSum", ops::cast(s, chosen, r.input_dtype(0)));
  const Output shares = ops::real_div(s, r.grad(), ops::maximum(s, counts, 1));
  r.set(0, ops::select(s, chosen, rows.of_segments(shares), 0));
}

void add_unsorted_segment_rules(RuleTable& table) {
  table.add("UnsortedSegmentSum", [](RuleContext& r) {
    const UnsortedRows rows(r);
    rows.set(rows.of_segments(r.grad()));
  });
  table.add("UnsortedSegmentProd", unsorted_prod_rule);
  table.add({"UnsortedSegmentMax", "UnsortedSegmentMin"},
            unsorted_extreme_rule);
}

// --- Rows that are picked ---------------------------------------------------

// The common prefix of an op's name, such as "SparseSegmentMean".
std::string sparse_segment_op(const Node& node) {
  const std::string& op = node.op();
  return op.substr(0, std::min(op.find("WithNumSegments"), op.find("Grad")));
}

Output rows_of_input(RuleContext& r) {
  return ops::gather(r.scope(), r.input_shape(0), 0);
}

void sparse_segment_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const std::string op = sparse_segment_op(r.node()) + "Grad";
  const graph::Inputs inputs = {r.grad(), r.input(1), r.input(2),
                                rows_of_input(r)};
  if (!r.attr<bool>("sparse_gradient")) return r.set(0, s.op(op, inputs));
  const graph::OpResult rows = s.op(op + "V2", inputs);
  r.set_slices(0, rows[0], rows[1]);
}

// The gradient op is linear: it adds a segment's value to row `picked` of its
// result, so the gradient of that row goes back to the segment.
void set_picked(RuleContext& r, const Output& picked) {
  r.set(0, r.scope().op(sparse_segment_op(r.node()) + "WithNumSegments",
                        {r.grad(), picked, r.input(2), rows_of_input(r)}));
}

void add_sparse_segment_rules(RuleTable& table) {
  table.add(
      {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN",
       "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
       "SparseSegmentSqrtNWithNumSegments"},
      sparse_segment_rule);
  table.add({"SparseSegmentSumGrad", "SparseSegmentMeanGrad",
             "SparseSegmentSqrtNGrad"},
            [](RuleContext& r) { set_picked(r, r.input(1)); });
  // Their rows are those of the sorted indices in output 1.
  table.add({"SparseSegmentSumGradV2", "SparseSegmentMeanGradV2",
             "SparseSegmentSqrtNGradV2"},
            [](RuleContext& r) {
              const Scope& s = r.scope();
              const Output sorted = ops::expand_dims(s, r.output(1), 0);
              const Output indices = ops::expand_dims(s, r.input(1), 0);
              const Output rows = s.op("LowerBound", {sorted, indices});
              set_picked(r, ops::squeeze(s, rows, {0}));
            });
}

}  // namespace

void add_segment_rules(RuleTable& table) {
  add_sorted_segment_rules(table);
  add_unsorted_segment_rules(table);
  add_sparse_segment_rules(table);
  table.add_forward({"SegmentSum", "SegmentMean", "UnsortedSegmentSum"},
                    linear<0>);
}

}  // namespace tagflow::autodiff
