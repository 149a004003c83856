// What optimizers, clipping and losses do to values and gradients. Of
// autodiff/train.
#pragma once

#include <string_view>

#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// `value` as a tensor of the type: a literal becomes a Const of that name, and
// a tensor of another type is cast.
Output typed_value(const graph::Scope& s, const graph::Input& value,
                   DataType dtype, std::string_view name);

// Half and bfloat16 have too few digits for sums: float in place of them, else
// the type itself.
DataType sum_type(DataType dtype);

// The gradient with each row once: rows of one index are added. A dense one
// stays as it is.
Gradient with_unique_rows(const graph::Scope& s, const Gradient& gradient);

// The gradient of a tensor of `rows` rows, all of them.
Output dense_rows(const graph::Scope& s, const Gradient& gradient,
                  int64_t rows);

}  // namespace tagflow::autodiff
