// What tests of recursive functions have in common: the power, by recursion.
#pragma once

#include "graph/builder/builder.h"

namespace tagflow::autodiff::testing {

// An argument of doubles, of any shape.
inline const graph::ArgumentSpec kX{"x", DataType::kDouble, {}};
// An argument that says how deep a recursion is.
inline const graph::ArgumentSpec kN{"n", DataType::kInt32,
                                    PartialShape::scalar()};
// A result of doubles, of any shape.
inline const graph::ResultSpec kY{DataType::kDouble, {}};

// Defines power(x, n) = n > 0 ? x * power(x, n - 1) : 1.
inline void define_power(const graph::Scope& s) {
  namespace ops = graph::ops;
  graph::define_function(
      s, {.name = "power",
          .args = {kX, kN},
          .results = {kY},
          .body = [](const graph::Scope& in,
                     const graph::Outputs& a) -> graph::Outputs {
            return graph::cond(
                in, ops::greater(in, a[1], 0),
                [&](const graph::Scope& b) -> graph::Outputs {
                  return ops::mul(
                      b, a[0],
                      graph::call(b, "power", {a[0], ops::sub(b, a[1], 1)})[0]);
                },
                [&](const graph::Scope& b) -> graph::Outputs {
                  return ops::ones_like(b, a[0]);
                });
          }});
}

// Calls what define_power() has defined.
inline graph::Output power(const graph::Scope& s, const graph::Input& x,
                           const graph::Input& n) {
  return graph::call(s, "power", {x, n})[0];
}

}  // namespace tagflow::autodiff::testing
