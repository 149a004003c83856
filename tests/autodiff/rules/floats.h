// Checks of gradients of ops without kernels for doubles.
#pragma once

#include <utility>

#include "graph/builder/ops_elementwise.h"
#include "tests/autodiff/gradient_check.h"

namespace tagflow::autodiff::testing {

// f of floats, as a function of doubles.
inline Function of_floats(Function f) {
  return [f = std::move(f)](const graph::Scope& s, const graph::Outputs& x) {
    graph::Outputs floats, results;
    for (const graph::Output& each : x)
      floats.push_back(graph::ops::cast(s, each, DataType::kFloat));
    for (const graph::Output& each : f(s, floats))
      results.push_back(graph::ops::cast(s, each, DataType::kDouble));
    return results;
  };
}

// Long steps, since differences of floats have few digits.
inline CheckOptions float_options(int order = 2) {
  return {.order = order, .step = 1e-2, .tolerance = 2e-3};
}

}  // namespace tagflow::autodiff::testing
