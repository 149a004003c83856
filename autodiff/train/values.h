// Helpers of optimizers, clipping and losses. Internal to autodiff/train.
#pragma once

#include <string_view>

#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// `value` as a tensor of the type: a literal becomes a Const of that name, and
// a tensor of another type is cast.
Output typed_value(const graph::Scope& s, const graph::Input& value,
                   DataType dtype, std::string_view name);

// Float for half and bfloat16, which have too few digits for sums; any other
// type itself.
DataType sum_type(DataType dtype);

// The gradient with unique rows: rows with the same index are summed. A dense
// gradient is returned as it is.
Gradient with_unique_rows(const graph::Scope& s, const Gradient& gradient);

// The gradient of a tensor of `rows` rows, as a dense tensor.
Output dense_rows(const graph::Scope& s, const Gradient& gradient,
                  int64_t rows);

}  // namespace tagflow::autodiff
