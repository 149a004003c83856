// Helpers that rules of array ops, of variables and of sparse tensors share.
#pragma once

#include <optional>
#include <vector>

#include "autodiff/rules/arithmetic.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

// The elements of an integer input if it is a constant.
std::optional<std::vector<int64_t>> known_indices(RuleContext& r, int input);
// The element of an integer input that has one, if it is a constant.
std::optional<int64_t> known_index(RuleContext& r, int input);
// The input as an index type that all ops take: int32 for narrower ones.
Output index_input(RuleContext& r, int input);

// 0, 1, ..., count - 1, of the type of the scalar `count`.
Output count_to(const Scope& s, const Output& count);
// Several vectors, or blocks of rows, as one.
Output join_rows(const Scope& s, const Outputs& parts);
// zero_unless(): x where the mask is true, and zeros elsewhere, even where x is
// not finite. zero_where(): the opposite. The mask has the shape of x, or is a
// vector that selects rows of it.
Output zero_unless(const Scope& s, const Output& mask, const Output& x);
Output zero_where(const Scope& s, const Output& mask, const Output& x);

// A mask of the writes that no later write to the same place overwrites.
// `places` is a matrix with a row of coordinates for each write; `shape` is a
// prefix of the written tensor's shape. `policy` has the attributes for
// coordinates out of range, as for ScatterNd.
Output last_writes(const Scope& s, const Output& places, const Output& shape,
                   const AttrMap& policy = {});

// A gather takes slices along dimension `axis`, separately for each index of
// the first `batch_dims` dimensions, which params and indices share. Both are
// non-negative int64 scalars.
struct GatherAxes {
  Output axis, batch_dims;
};
// The gradient of GatherV2 by params, whose shape is `shape`, of int64.
Output gather_gradient(const Scope& s, const Output& grad,
                       const Output& indices, const Output& shape,
                       const GatherAxes& axes);
// For a node that gathers rows of input 0, along its first dimension, by input
// 1: sets the sparse gradient of input 0.
void set_gathered_rows(RuleContext& r);
// Sets the gradient of input 0 of a gather by the coordinate vectors in input
// 1.
void set_gathered_vectors(RuleContext& r, const AttrMap& policy = {});

// Called by add_array_rules().
void add_array_index_rules(RuleTable& table);
void add_array_layout_rules(RuleTable& table);
void add_array_scatter_rules(RuleTable& table);

}  // namespace tagflow::autodiff
