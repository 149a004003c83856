// Helpers for the rules of matrix decompositions, which are a part of
// add_linalg_rules().
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

void add_decomposition_rules(RuleTable& table);  // linalg_decompositions.cpp
void add_svd_rules(RuleTable& table);            // linalg_svd.cpp

// The last element of a shape, as a vector.
Output last_of(RuleContext& r, const Output& shape);
// The first `count` columns of matrices, and the others; `count` is a vector of
// one element.
Output first_columns(RuleContext& r, const Output& x, const Output& count);
Output other_columns(RuleContext& r, const Output& x, const Output& count);

// Whether the matrices of input 0 are known to have at most as many columns as
// rows, or at most as many rows as columns.
bool known_tall(const RuleContext& r);
bool known_wide(const RuleContext& r);

// x - x^H.
Output skew(RuleContext& r, const Output& x);

}  // namespace tagflow::autodiff
