#include "graph/builder/ops_control.h"

namespace tagflow::graph::ops {

Outputs all_outputs(const OpResult& result) {
  Outputs outputs;
  for (int i = 0; i < result.size(); ++i) outputs.push_back(result[i]);
  return outputs;
}

Outputs identity_n(const Scope& s, const Inputs& inputs) {
  return all_outputs(s.op("IdentityN", inputs));
}

Outputs tuple(const Scope& s, const Outputs& outputs,
              const Outputs& control_inputs) {
  const Output gate = group(s.with_control_dependencies(control_inputs)
                                .with_control_dependencies(outputs),
                            {});
  if (!s.ok()) return {};
  const Scope gated =
      s.without_control_dependencies().with_control_dependencies(gate);
  Outputs result;
  for (const Output& output : outputs) {
    if (output.has_tensor()) result.push_back(identity(gated, output));
  }
  return result;
}

}  // namespace tagflow::graph::ops
