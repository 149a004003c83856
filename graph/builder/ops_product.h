// Op functions: matrix products.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
};
inline Output matmul(const Scope& s, const Input& a, const Input& b,
                     MatMulAttrs m = {}) {
  return s.op("MatMul", {a, b},
              {{"transpose_a", m.transpose_a}, {"transpose_b", m.transpose_b}});
}
struct BatchMatMulAttrs {
  bool adj_x = false;
  bool adj_y = false;
};
inline Output batch_matmul(const Scope& s, const Input& x, const Input& y,
                           BatchMatMulAttrs m = {}) {
  return s.op("BatchMatMulV2", {x, y},
              {{"adj_x", m.adj_x}, {"adj_y", m.adj_y}});
}

}  // namespace tagflow::graph::ops
