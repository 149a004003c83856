// Op functions: convolutions.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

inline Output conv2d(const Scope& s, const Input& x, const Input& filter,
                     std::vector<int64_t> strides, std::string padding) {
  return s.op(
      "Conv2D", {x, filter},
      {{"strides", std::move(strides)}, {"padding", std::move(padding)}});
}

}  // namespace tagflow::graph::ops
