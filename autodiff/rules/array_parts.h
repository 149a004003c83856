// What rules of array ops, of variables and of sparse tensors share.
#pragma once

#include <optional>
#include <vector>

#include "autodiff/rules/arithmetic.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

// The elements of an integer input where it is a constant.
std::optional<std::vector<int64_t>> known_indices(RuleContext& r, int input);
// The same of an input that has one element.
std::optional<int64_t> known_index(RuleContext& r, int input);
// The input as an index type that all ops take: int32 for narrower ones.
Output index_input(RuleContext& r, int input);

// 0, 1, ..., count - 1, of the type of the scalar `count`.
Output count_to(const Scope& s, const Output& count);
// Several vectors, or blocks of rows, as one.
Output join_rows(const Scope& s, const Outputs& parts);
// x where the mask holds, and else zeros that do not depend on what x is. The
// mask has the shape of x, or is a vector that chooses among its rows.
Output zero_unless(const Scope& s, const Output& mask, const Output& x);
Output zero_where(const Scope& s, const Output& mask, const Output& x);
// A gradient of the shape `to`, summed over the dimensions along which what has
// the shape `from` was broadcast to it.
Output sum_to_shape(const Scope& s, const Output& gradient, const Output& from,
                    const Output& to);

// Which of several writes, one to each of `places`, are the last at their
// place. `places` is a matrix, a row of coordinates for each; `shape` is that
// of the tensor written to, or begins so. `policy` says what becomes of
// coordinates outside, as for ScatterNd.
Output last_writes(const Scope& s, const Output& places, const Output& shape,
                   const AttrMap& policy = {});

// Where a gather takes its slices: along dimension `axis`, anew for each index
// of the first `batch_dims`, which params and indices have in common. Both are
// int64 scalars and not negative.
struct GatherAxes {
  Output axis, batch_dims;
};
// The gradient of params by GatherV2, where `shape` is theirs, of int64.
Output gather_gradient(const Scope& s, const Output& grad,
                       const Output& indices, const Output& shape,
                       const GatherAxes& axes);
// Of a node that gathers rows of input 0, along its first dimension, by input
// 1: the gradient of input 0, as slices.
void set_gathered_rows(RuleContext& r);
// The gradient of a gather by vectors of coordinates, of input 0 by input 1.
void set_gathered_vectors(RuleContext& r, const AttrMap& policy = {});

// Parts of families that have files of their own.
void add_array_misc_rules(RuleTable& table);     // array_misc.cpp
void add_random_rules(RuleTable& table);         // random.cpp
void add_array_scatter_rules(RuleTable& table);  // array_scatter.cpp
void add_sparse_math_rules(RuleTable& table);    // sparse_math.cpp
void add_ragged_rules(RuleTable& table);         // ragged.cpp

}  // namespace tagflow::autodiff
