// Compares a result with the recorded one.
#pragma once

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// Compares a fetch with what was expected: dtype and shape must agree;
// integers, bools and strings must be equal; for floating-point numbers,
// with t = tolerance(dtype),
//
//   |actual - expected| <= t + t * |expected|
//
// where NaN equals NaN and an infinity itself. Real and imaginary parts are
// compared separately. The cases were written by numpy, which has no quantized
// types (qint8 is written as int8, ...) and drops trailing zero bytes of
// strings: neither counts as a difference. Returns OK, or InvalidArgument with
// what differs, where, and how many elements differ. Thread-safe.
Status compare(const Tensor& actual, const Tensor& expected);

// 1e-4 for float and complex64, 1e-9 for double and complex128, 1e-2 for the
// 16-bit types, 0 for all others.
double tolerance(DataType dtype);

}  // namespace tagflow::apps
