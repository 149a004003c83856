// Random numbers for tests of functions on plain floats.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tagflow::devices {

using Floats = std::vector<float>;

// So many in [-1, 1).
inline Floats random_floats(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<float> any(-1, 1);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = any(random);
  return values;
}

// In [0, limit).
inline int64_t random_below(std::mt19937& random, int64_t limit) {
  return std::uniform_int_distribution<int64_t>(0, limit - 1)(random);
}

}  // namespace tagflow::devices
