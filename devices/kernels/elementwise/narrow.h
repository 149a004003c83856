// Conversion of arrays of 16-bit floats to and from float.
#pragma once

#include <cstdint>

#include "graph/dtype.h"
#include "graph/float16.h"

namespace tagflow::devices {

// z[i] = x[i] for i < n. The arrays do not overlap.
void widen(const Half* x, float* z, int64_t n);
void widen(const BFloat16* x, float* z, int64_t n);
// z[i] = x[i] for i < n, rounded to the nearest, and to even ones in between.
void narrow(const float* x, Half* z, int64_t n);
void narrow(const float* x, BFloat16* z, int64_t n);

}  // namespace tagflow::devices
