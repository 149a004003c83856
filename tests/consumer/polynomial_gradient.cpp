// The gradient rule of Polynomial: its derivative is a Polynomial, too.
#include <vector>

#include "autodiff/rule.h"
#include "graph/builder/ops_elementwise.h"
#include "own_ops.h"

using namespace tagflow;

namespace {

void polynomial_rule(autodiff::RuleContext& r) {
  const auto coefficients = r.attr<std::vector<float>>("coefficients");
  std::vector<float> derivative;
  for (size_t i = 1; i < coefficients.size(); ++i)
    derivative.push_back(float(i) * coefficients[i]);
  // A constant: y does not depend on x.
  if (derivative.empty()) return;
  const graph::Output slope =
      r.scope().op("Polynomial", {r.input(0)}, {{"coefficients", derivative}});
  r.set(0, graph::ops::mul(r.scope(), r.grad(), slope));
}

}  // namespace

void add_polynomial_gradient() {
  autodiff::RuleTable::global().add("Polynomial", polynomial_rule);
}
