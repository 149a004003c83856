// Whether a result is the one that was recorded.
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
// where NaN equals NaN and an infinity itself. Parts of complex numbers are
// compared apart. The cases went through numpy, which has no quantized types
// (qint8 is written as int8, ...) and drops the zero bytes at the end of a
// string: neither counts as a difference. OK, or InvalidArgument saying what
// differs, where, and how many elements do. Thread-safe.
Status compare(const Tensor& actual, const Tensor& expected);

// 1e-4 for float and complex64, 1e-9 for double and complex128, 1e-2 for the
// 16-bit types, 0 for all others.
double tolerance(DataType dtype);

}  // namespace tagflow::apps
