// Checks of ops that are linear, or move elements.
#pragma once

#include <utility>
#include <vector>

#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "tests/autodiff/rules/functions.h"

namespace tagflow::autodiff::testing {

// Checks the gradients of the squares of what f gives. The second derivative of
// a linear op is zero, which many a wrong rule would get right: that of its
// square is not.
inline void check_squares(const Function& f, const std::vector<Tensor>& xs,
                          const CheckOptions& options = {},
                          int line = __builtin_LINE()) {
  check_gradients(
      [&f](const graph::Scope& s, const graph::Outputs& x) {
        graph::Outputs squares;
        for (const graph::Output& y : f(s, x))
          squares.push_back(graph::ops::square(s, y));
        return squares;
      },
      xs, options, line);
}

// As op_with(), but of what the further inputs are the graph knows nothing.
inline Function op_with_unknown(std::string op, std::vector<graph::Input> more,
                                AttrMap attrs = {}) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    graph::Inputs inputs = x;
    for (const graph::Input& input : more)
      inputs.add(
          graph::ops::placeholder_with_default(s, input, PartialShape()));
    return graph::Outputs(s.op(op, inputs, attrs));
  };
}

// Of some outputs of the op, where x is input `at` among the others.
inline Function outputs_of(std::string op, size_t at,
                           std::vector<graph::Input> others,
                           std::vector<int> outputs, AttrMap attrs = {}) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    std::vector<graph::Input> inputs = others;
    inputs.insert(inputs.begin() + std::ptrdiff_t(at), x.begin(), x.end());
    graph::Inputs all;
    for (const graph::Input& input : inputs) all.add(input);
    const graph::OpResult result = s.op(op, all, attrs);
    graph::Outputs wanted;
    for (const int output : outputs) wanted.push_back(result[output]);
    return wanted;
  };
}

}  // namespace tagflow::autodiff::testing
