// Reductions along dimensions, and weighted counts.
#include <algorithm>
#include <optional>
#include <vector>

#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"
#include "autodiff/rules/reduction_rules.h"
#include "graph/builder/ops_reduction.h"
#include "graph/known_value.h"

namespace tagflow::autodiff {
namespace {

// The dimensions of an input of that rank that the node reduces, if the
// graph knows them.
std::optional<std::vector<bool>> known_reduced(const Node& node, int rank) {
  const Tensor* axes = graph::known_constant(node.inputs()[1]);
  if (axes == nullptr) return {};
  std::vector<bool> reduced(size_t(rank), false);
  const auto add = [&](int64_t axis) {
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) reduced[size_t(axis)] = true;
  };
  if (axes->dtype() == DataType::kInt64)
    for (const int64_t axis : axes->flat<int64_t>()) add(axis);
  else
    for (const int32_t axis : axes->flat<int32_t>()) add(axis);
  return reduced;
}

// The shapes of a reduction's input and results. Values that are unknown when
// the graph is built are computed by ops, made once for each rule: in a loop
// they save values of each iteration.
class ReductionShapes {
 public:
  explicit ReductionShapes(RuleContext& r) : r_(r), s_(r.scope()) {}

  // A tensor of the result's shape, with the reduced dimensions: of size 1,
  Output with_dims(const Output& x) {
    return r_.attr<bool>("keep_dims") ? x : ops::reshape(s_, x, kept_shape());
  }
  // or of their size.
  Output spread(const Output& x) {
    return ops::broadcast_to(s_, with_dims(x), input_shape());
  }
  // The number of elements that become one: a scalar of the type of `like`.
  Output count(const Output& like);

 private:
  const Output& input_shape() {
    if (!input_shape_.valid()) input_shape_ = r_.input_shape(0);
    return input_shape_;
  }
  const Output& kept_shape();
  const Output& is_reduced();
  // If the graph knows the input's rank.
  const std::optional<std::vector<bool>>& known();

  RuleContext& r_;
  const Scope& s_;
  std::optional<std::vector<bool>> known_;
  Output input_shape_, kept_shape_, is_reduced_;
};

const std::optional<std::vector<bool>>& ReductionShapes::known() {
  const PartialShape& shape = r_.known_input_shape(0);
  if (!known_ && shape.has_rank())
    known_ = known_reduced(r_.node(), shape.rank());
  return known_;
}

const Output& ReductionShapes::is_reduced() {
  if (is_reduced_.valid()) return is_reduced_;
  if (known()) {
    const auto size = int64_t(known()->size());
    Tensor mask = Tensor::make(DataType::kBool, {size});
    std::ranges::copy(*known(), mask.mutable_data<bool>());
    return is_reduced_ = s_.constant(std::move(mask));
  }
  const Output rank = ops::size(s_, input_shape());
  const Output axes = as_type(s_, r_.input(1), DataType::kInt32);
  const Output from_start =
      ops::select(s_, ops::less(s_, axes, 0), ops::add(s_, axes, rank), axes);
  const Output rows = ops::one_hot(
      s_, ops::reshape(s_, from_start, r_.ints({-1})), rank, true, false);
  return is_reduced_ = ops::reduce_any(s_, rows, 0);
}

const Output& ReductionShapes::kept_shape() {
  if (kept_shape_.valid()) return kept_shape_;
  std::vector<int64_t> dims;
  bool all_known = known().has_value();
  for (size_t i = 0; all_known && i < known()->size(); ++i) {
    dims.push_back((*known())[i] ? 1 : r_.known_input_shape(0).dim(int(i)));
    all_known = dims.back() != PartialShape::kUnknown;
  }
  if (all_known) return kept_shape_ = r_.ints(dims);
  return kept_shape_ = ops::select(s_, is_reduced(), 1, input_shape());
}

Output ReductionShapes::count(const Output& like) {
  std::optional<int64_t> number;
  if (known()) number = 1;
  for (size_t i = 0; number && i < known()->size(); ++i)
    if ((*known())[i])
      number = checked_multiply(*number, r_.known_input_shape(0).dim(int(i)));
  if (number) return r_.scalar(double(*number), like);
  const Output dims = ops::select(s_, is_reduced(), input_shape(), 1);
  const Output wide = ops::cast(s_, dims, DataType::kInt64);
  return ops::cast(s_, ops::reduce_prod(s_, wide, 0), like.dtype());
}

void mean_rule(RuleContext& r) {
  const Scope& s = r.scope();
  ReductionShapes shapes(r);
  // Counts often exceed 16 bits.
  const DataType dtype = r.input_dtype(0);
  const bool is_short =
      dtype == DataType::kHalf || dtype == DataType::kBFloat16;
  const Output grad = as_type(s, r.grad(), is_short ? DataType::kFloat : dtype);
  const Output share = ops::real_div(s, grad, shapes.count(grad));
  r.set(0, shapes.spread(as_type(s, share, dtype)));
}

void prod_rule(RuleContext& r) {
  const Scope& s = r.scope();
  ReductionShapes shapes(r);
  const Output axes = r.input(1);
  const Output others = products_of_others(
      s, r.conj(r.input(0)), shapes.with_dims(r.conj(r.output())),
      [&](const Output& x) { return ops::reduce_sum(s, x, axes, {true}); },
      [&](const Output& x) { return ops::reduce_prod(s, x, axes, {true}); });
  r.set(0, ops::mul(s, shapes.with_dims(r.grad()), others));
}

// The elements that are equal to the extremum share its gradient.
void extreme_rule(RuleContext& r) {
  const Scope& s = r.scope();
  ReductionShapes shapes(r);
  const Output chosen = ops::equal(s, r.input(0), shapes.with_dims(r.output()));
  const Output count = ops::reduce_sum(
      s, ops::cast(s, chosen, r.input_dtype(0)), r.input(1), {true});
  const Output share = ops::real_div(s, shapes.with_dims(r.grad()), count);
  r.set(0, ops::select(s, chosen, share, 0));
}

// --- Counts -----------------------------------------------------------------

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

void add_count_rules(RuleTable& table) {
  table.add("Bincount", bincount_rule);
  table.add("DenseBincount", [](RuleContext& r) {
    // With binary output the weights do not matter.
    if (!r.attr<bool>("binary_output")) bincount_rule(r);
  });
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  table.add("Sum", [](RuleContext& r) {
    r.set(0, ReductionShapes(r).spread(r.grad()));
  });
  table.add("Mean", mean_rule);
  table.add("Prod", prod_rule);
  table.add({"Max", "Min"}, extreme_rule);
  // The root of the sum of |x|^2, a real number: x / y, and 0 if y is 0.
  table.add("EuclideanNorm", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output ratio = ops::div_no_nan(s, real_part(s, r.grad()), r.output());
    r.set(0, ops::mul(s, r.input(0), ReductionShapes(r).with_dims(ratio)));
  });
  // Half the sum of squares.
  table.add("L2Loss", [](RuleContext& r) {
    r.set(0, ops::mul(r.scope(), r.grad(), r.input(0)));
  });
  add_count_rules(table);
  no_gradient(table, "All Any", "it is about true and false");
  no_gradient(table, "ArgMax ArgMin HistogramFixedWidth",
              "its results are indices or counts");
  table.add_forward({"Sum", "Mean"}, linear<0>);
  add_reduction_scan_rules(table);
}

}  // namespace tagflow::autodiff
