// How far a result is from what it is to be.
#pragma once

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// The largest difference of an element, as a part of the largest expected one;
// no number where there is one among them. DataLoss where the two are not both
// floats, or of another shape. Thread-safe.
Result<double> largest_difference(const Tensor& actual, const Tensor& expected);

}  // namespace tagflow::apps
