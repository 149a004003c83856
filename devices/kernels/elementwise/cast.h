// Conversion of elements between types.
#pragma once

#include <cstdint>

#include "devices/kernel.h"
#include "graph/dtype.h"

namespace tagflow::devices {

// z[i] = x[i] in another type, for i < n. The arrays do not overlap.
using CastRow = void (*)(const void* x, void* z, int64_t n);

// Between bool, integers, float and double; null for any other type.
// - to bool: whether it is not 0
//   - floating to integer: towards zero; NaN and values that do not fit become
//     the
//   smallest int32 or int64 and then wrap around to a smaller type (2^63 for
//   uint64)
// - between integers: wraps around
CastRow core_cast_row(DataType from, DataType to);
// The conversion of one element in its token.
ScalarFunction core_cast_scalar(DataType from, DataType to);

// Clears the bits of each float or double that `to`, a smaller floating type,
// cannot hold, so that a cast truncates. Null if `to` is not smaller.
CastRow truncate_row(DataType from, DataType to);

}  // namespace tagflow::devices
