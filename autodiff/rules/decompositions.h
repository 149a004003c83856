// Matrix decompositions: what their rules share. They are a part of
// add_linalg_rules().
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

void add_decomposition_rules(RuleTable& table);  // decompositions.cpp
void add_svd_rules(RuleTable& table);            // svd.cpp

// The last element of a shape, as a vector.
Output last_of(RuleContext& r, const Output& shape);
// The first columns of matrices, as many as `count` says, a vector of one
// element; and the others.
Output first_columns(RuleContext& r, const Output& x, const Output& count);
Output other_columns(RuleContext& r, const Output& x, const Output& count);

// Whether it is known that the matrices of input 0 have no more columns than
// rows; or no more rows than columns.
bool known_tall(const RuleContext& r);
bool known_wide(const RuleContext& r);

// x - x^H.
Output skew(RuleContext& r, const Output& x);

}  // namespace tagflow::autodiff
