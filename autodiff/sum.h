// Sums of any number of tensors.
#pragma once

#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// The sum of tensors of one shape: the term itself if there is one, otherwise
// an AddN. A node has a limited number of inputs, so an AddN of many terms
// becomes a tree of them. REQUIRES: there is a term.
graph::Output sum_of(const graph::Scope& s, std::vector<graph::Output> terms);

// Tensors joined along their first dimension, in this order; a tree, as above.
// REQUIRES: there is a tensor.
graph::Output joined(const graph::Scope& s, std::vector<graph::Output> tensors);

}  // namespace tagflow::autodiff
