// Op functions: the maximum or mean of windows.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

inline Output max_pool(const Scope& s, const Input& x,
                       std::vector<int64_t> ksize, std::vector<int64_t> strides,
                       std::string padding) {
  return s.op("MaxPool", {x},
              {{"ksize", std::move(ksize)},
               {"strides", std::move(strides)},
               {"padding", std::move(padding)}});
}
inline Output avg_pool(const Scope& s, const Input& x,
                       std::vector<int64_t> ksize, std::vector<int64_t> strides,
                       std::string padding) {
  return s.op("AvgPool", {x},
              {{"ksize", std::move(ksize)},
               {"strides", std::move(strides)},
               {"padding", std::move(padding)}});
}

// If both seeds are 0, the session chooses.

}  // namespace tagflow::graph::ops
