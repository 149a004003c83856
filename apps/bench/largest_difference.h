// The difference between a result and its expected value.
#pragma once

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// The largest difference of two elements, relative to the largest expected
// element; NaN if any element is NaN. Returns DataLoss if the two are not
// both floats of the same shape. Thread-safe.
Result<double> largest_difference(const Tensor& actual, const Tensor& expected);

}  // namespace tagflow::apps
