// Arithmetic of sparse tensors: sums, products, reductions.
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/sparse_rules.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {
namespace {

// The number of each index, a row of int64 coordinates, within the elements of
// a tensor of that shape. In a dimension of 1 every coordinate counts as 0.
Output flat_numbers(const Scope& s, const Output& indices,
                    const Output& shape) {
  const Output strides =
      s.op("Cumprod", {shape, 0}, {{"exclusive", true}, {"reverse", true}});
  const Output counts =
      ops::cast(s, ops::not_equal(s, shape, 1), DataType::kInt64);
  return ops::reduce_sum(s, ops::mul(s, indices, ops::mul(s, strides, counts)),
                         1);
}

// --- Sums of two ------------------------------------------------------------

// The positions of the elements of a and b in their sum, -1 if they are
// missing. Inputs: those of SparseAddGrad without its gradients.
std::vector<Output> places_in_sum(const Scope& s, const Output& a,
                                  const Output& b, const Output& sum) {
  const Output numbers = count_to(s, ops::gather(s, ops::shape(s, sum), 0));
  const graph::OpResult found =
      s.op("SparseAddGrad", {ops::add(s, numbers, 1), a, b, sum});
  return {ops::sub(s, found[0], 1), ops::sub(s, found[1], 1)};
}

void add_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const std::vector<Output> places =
      places_in_sum(s, r.input(1), r.input(2), r.input(3));
  const Output count = ops::gather(s, r.input_shape(0), 0);
  graph::Inputs terms;
  for (int i = 0; i < 2; ++i)
    if (r.has_grad(i))
      terms.add(
          ops::unsorted_segment_sum(s, r.grad(i), places[size_t(i)], count));
  r.set(0, ops::add_n(s, terms));
}

// The larger, or smaller, element gets the gradient; of two equal ones the
// first. A missing element counts as 0.
void sparse_extreme_rule(RuleContext& r, std::string_view comparison) {
  const Scope& s = r.scope();
  const std::vector<Output> places =
      places_in_sum(s, r.input(0), r.input(3), r.output(0));
  const Output count = ops::gather(s, r.output_shape(1), 0);
  const auto in_sum = [&](int values, const Output& at) {
    return ops::unsorted_segment_sum(s, r.input(values), at, count);
  };
  const Output is_first =
      s.op(comparison, {in_sum(1, places[0]), in_sum(4, places[1])});
  if (r.wants(1))
    r.set(1, ops::gather(s, zero_unless(s, is_first, r.grad(1)), places[0]));
  if (r.wants(4))
    r.set(4, ops::gather(s, zero_where(s, is_first, r.grad(1)), places[1]));
}

void add_pair_rules(RuleTable& table) {
  table.add("SparseAdd", [](RuleContext& r) {
    const graph::OpResult grads = r.scope().op(
        "SparseAddGrad", {r.grad(1), r.input(0), r.input(3), r.output(0)});
    r.set(1, grads[0]);
    r.set(4, grads[1]);
  });
  table.add("SparseAddGrad", add_grad_rule);
  table.add("SparseSparseMaximum",
            [](RuleContext& r) { sparse_extreme_rule(r, "GreaterEqual"); });
  table.add("SparseSparseMinimum",
            [](RuleContext& r) { sparse_extreme_rule(r, "LessEqual"); });
}

// --- A sparse and a dense one -----------------------------------------------

// The gradient of a broadcast dense operand, input 3, from those of the
// elements at which it was used.
void set_dense(RuleContext& r, const Output& gradient) {
  const Scope& s = r.scope();
  const Output shape = r.input_shape(3, DataType::kInt64);
  const Output missing =
      ops::sub(s, ops::size(s, r.input(2)), ops::size(s, shape));
  const Output ones = ops::cast(
      s, ops::fill(s, ops::reshape(s, missing, {1}), 1), DataType::kInt64);
  const Output broadcast = ops::concat(s, {ones, shape}, 0);
  const Output sums = ops::unsorted_segment_sum(
      s, gradient, flat_numbers(s, r.input(0), broadcast),
      ops::reduce_prod(s, shape, 0));
  r.set(3, ops::reshape(s, sums, shape));
}

void add_dense_rules(RuleTable& table) {
  table.add("SparseDenseCwiseAdd", [](RuleContext& r) {
    r.set(1, r.grad());
    if (r.wants(3)) set_dense(r, r.grad());
  });
  table.add("SparseDenseCwiseMul", [](RuleContext& r) {
    const Scope& s = r.scope();
    if (r.wants(1))
      r.set(1, s.op("SparseDenseCwiseMul",
                    {r.input(0), r.grad(), r.input(2), r.conj(r.input(3))}));
    if (r.wants(3)) set_dense(r, ops::mul(s, r.grad(), r.conj(r.input(1))));
  });
  table.add("SparseDenseCwiseDiv", [](RuleContext& r) {
    const Scope& s = r.scope();
    const auto divided = [&](const Output& values) -> Output {
      return s.op("SparseDenseCwiseDiv",
                  {r.input(0), values, r.input(2), r.conj(r.input(3))});
    };
    if (r.wants(1)) r.set(1, divided(r.grad()));
    if (r.wants(3))
      set_dense(
          r, ops::neg(s, divided(ops::mul(s, r.grad(), r.conj(r.output())))));
  });
}

// c = op(a) op(b). With g the gradient of c, that of op(a) is g op(b)^H, of
// which only the elements of a are needed; that of op(b) is op(a)^H g.
void sparse_product_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const bool adjoint_a = r.attr<bool>("adjoint_a");
  const bool adjoint_b = r.attr<bool>("adjoint_b");
  const auto adjoint = [&](const Output& x) -> Output {
    return s.op("ConjugateTranspose", {x, {1, 0}});
  };
  if (r.wants(1)) {
    const Outputs at = ops::unpack(s, r.input(0), 2, 1);
    const Output b = adjoint_b ? adjoint(r.input(3)) : r.input(3);
    const Output rows = ops::gather(s, r.grad(), at[adjoint_a ? 1 : 0]);
    const Output columns = ops::gather(s, b, at[adjoint_a ? 0 : 1]);
    const Output sums =
        ops::reduce_sum(s, ops::mul(s, rows, r.conj(columns)), 1);
    r.set(1, adjoint_a ? r.conj(sums) : sums);
  }
  if (r.wants(3)) {
    const Output grad = s.op("SparseTensorDenseMatMul",
                             {r.input(0), r.input(1), r.input(2), r.grad()},
                             {{"adjoint_a", !adjoint_a}});
    r.set(3, adjoint_b ? adjoint(grad) : grad);
  }
}

// --- Reductions -------------------------------------------------------------

// For each element the number of its output element; `port` is that of the
// output's values. A sparse output is sorted.
Output places_in_reduction(RuleContext& r, int port) {
  const Scope& s = r.scope();
  const Output rank = ops::size(s, r.input(2));
  const Output axes =
      ops::floor_mod(s, ops::reshape(s, r.input(3), {-1}), rank);
  const Output is_reduced =
      ops::reduce_any(s, ops::one_hot(s, axes, rank, true, false), 0);
  const Output kept = ops::select(s, is_reduced, 1, r.input(2));
  const Output numbers = flat_numbers(s, r.input(0), kept);
  if (port == 0) return numbers;
  const Output found =
      s.op("LowerBound",
           {ops::expand_dims(s, flat_numbers(s, r.output(0), r.output(2)), 0),
            ops::expand_dims(s, numbers, 0)},
           {{"out_type", DataType::kInt64}});
  return ops::squeeze(s, found, {0});
}

void reduce_sum_rule(RuleContext& r, int port) {
  const Scope& s = r.scope();
  r.set(1, ops::gather(s, ops::reshape(s, r.grad(port), {-1}),
                       places_in_reduction(r, port)));
}

// Shared equally among the largest elements.
void reduce_max_rule(RuleContext& r, int port) {
  const Scope& s = r.scope();
  const Output places = places_in_reduction(r, port);
  const auto of_elements = [&](const Output& x) {
    return ops::gather(s, ops::reshape(s, x, {-1}), places);
  };
  const Output is_it = ops::equal(s, r.input(1), of_elements(r.output(port)));
  const Output ties =
      ops::unsorted_segment_sum(s, ops::cast(s, is_it, r.input_dtype(1)),
                                places, ops::size(s, r.output(port)));
  r.set(1, zero_unless(
               s, is_it,
               ops::real_div(s, of_elements(r.grad(port)), of_elements(ties))));
}

// y (g - sum of y g over the row).
void sparse_softmax_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output y = r.output();
  const Output sums =
      s.op("SparseReduceSum",
           {r.input(0), ops::mul(s, y, r.grad()), r.input(2), {-1}},
           {{"keep_dims", true}});
  const Output rest =
      s.op("SparseDenseCwiseAdd",
           {r.input(0), r.grad(), r.input(2), ops::neg(s, sums)});
  r.set(1, ops::mul(s, y, rest));
}

}  // namespace

void add_sparse_math_rules(RuleTable& table) {
  add_pair_rules(table);
  add_dense_rules(table);
  table.add("SparseTensorDenseMatMul", sparse_product_rule);
  table.add("SparseReduceSum", [](RuleContext& r) { reduce_sum_rule(r, 0); });
  table.add("SparseReduceSumSparse",
            [](RuleContext& r) { reduce_sum_rule(r, 1); });
  table.add("SparseReduceMax", [](RuleContext& r) { reduce_max_rule(r, 0); });
  table.add("SparseReduceMaxSparse",
            [](RuleContext& r) { reduce_max_rule(r, 1); });
  table.add("SparseSoftmax", sparse_softmax_rule);
}

}  // namespace tagflow::autodiff
