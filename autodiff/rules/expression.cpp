#include "autodiff/rules/expression.h"

#include "autodiff/gradients.h"
#include "graph/builder/ops_control_flow.h"

namespace tagflow::autodiff {

// The inputs pass Identities, which are live where the gradient is, so that the
// gradient does not include their sources.
void set_by_expression(RuleContext& r, Expression express) {
  const Scope& s = r.scope();
  Outputs grads;
  std::vector<int> ports;
  for (int port = 0; port < r.num_outputs(); ++port)
    if (r.has_grad(port)) {
      grads.push_back(r.grad(port));
      ports.push_back(port);
    }
  if (!s.ok()) return;
  const Scope there = s.with_control_dependencies({grads[0]});
  Outputs inputs, wanted;
  for (int i = 0; i < r.num_inputs(); ++i) {
    const Output input = graph::ops::identity(there, r.input(i));
    inputs.push_back(input);
    if (r.wants(i)) wanted.push_back(input);
  }
  const Outputs all = express(s, r.node(), inputs);
  if (!s.ok()) return;
  Outputs ys;
  GradientOptions options;
  for (size_t k = 0; k < ports.size(); ++k)
    if (const Output& y = all[size_t(ports[k])]; y.valid()) {
      ys.push_back(y);
      options.grad_ys.push_back(grads[k]);
    }
  if (ys.empty()) return;
  const Outputs results = dense_gradients(s, ys, wanted, options);
  for (int i = 0, next = 0; i < r.num_inputs(); ++i)
    if (r.wants(i)) r.set(i, results[size_t(next++)]);
}

}  // namespace tagflow::autodiff
