// Kernels that share objects, run one after another as if in one step.
#pragma once

#include <doctest/doctest.h>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "devices/step_resources.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

class OneStep {
 public:
  OneStep() { info_.resources = &resources; }

  Result<Outputs> run(std::string_view op, const std::vector<Tensor>& inputs,
                      AttrMap attrs = {}) const {
    return run_op(op, inputs, std::move(attrs), &info_);
  }
  // What must succeed: its first output.
  Tensor value(std::string_view op, const std::vector<Tensor>& inputs,
               AttrMap attrs = {}) const {
    Result<Outputs> outputs = run(op, inputs, std::move(attrs));
    INFO(outputs.status().to_string());
    REQUIRE(outputs.ok());
    return outputs->empty() ? Tensor() : (*outputs)[0];
  }
  // A new tensor array's handle.
  Tensor array(int size, DataType dtype, AttrMap attrs = {}) const {
    attrs["dtype"] = dtype;
    return value("TensorArrayV3", {Tensor::scalar(size)}, std::move(attrs));
  }

  StepResources resources;

 private:
  StepInfo info_;
};

// What one kernel may do with inputs that nobody else holds. `inputs` are
// empty afterwards. Outputs are in `memory`.
inline Result<Outputs> run_unshared(std::string_view op,
                                    std::vector<Tensor>& inputs,
                                    AttrMap attrs = {},
                                    Allocator& memory = host_allocator()) {
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (const Tensor& input : inputs) {
    TAGFLOW_ASSIGN(graph::Node * node,
                   graph.add(graph.unique_name("input"), "Placeholder", {},
                             {{"dtype", input.dtype()}}));
    endpoints.push_back({node, 0});
  }
  TAGFLOW_ASSIGN(graph::Node * node,
                 graph.add("op", op, endpoints, std::move(attrs)));
  TAGFLOW_ASSIGN(auto kernel, KernelRegistry::global().make(*node, "CPU"));
  Outputs outputs(size_t(node->num_outputs()));
  const StepInfo step;
  const Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag, &memory);
  TAGFLOW_RETURN_IF_ERROR(run_kernel(*kernel, context));
  inputs.clear();
  return outputs;
}

}  // namespace tagflow::devices
