#include "tests/devices/state_fixture.h"

#include <doctest/doctest.h>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/graph.h"
#include "graph/op_registry.h"

namespace tagflow::devices {

namespace {

class LastFirst final : public Parallel {
 public:
  void run(int64_t total, double, RangeBody body) override {
    const int64_t middle = total / 2;
    if (middle < total) body(middle, total);
    if (middle > 0) body(0, middle);
  }
};

// What feeds an input of the op.
Result<graph::Endpoint> source(graph::Graph& graph, const graph::ArgDef& arg,
                               const Tensor& input) {
  std::string op = "Placeholder";
  AttrMap attrs{{"dtype", input.dtype()}};
  if (input.dtype() == DataType::kResource) {
    op = arg.dtype == DataType::kResource ? "VarHandleOp" : "VariableV2";
    attrs = {{"dtype", variable_of(input).dtype()}, {"shape", PartialShape()}};
  }
  TAGFLOW_ASSIGN(graph::Node * node, graph.add(graph.unique_name("input"), op,
                                               {}, std::move(attrs)));
  return graph::Endpoint{node, 0};
}

}  // namespace

Tensor make_variable(const std::string& name, DataType dtype,
                     const PartialShape& declared) {
  Result<Tensor> handle = Tensor::allocate(DataType::kResource, {});
  REQUIRE(handle.ok());
  *handle->mutable_data<ResourceHandle>() =
      ResourceHandle(make_ref_counted<Variable>(name, dtype, declared));
  return *std::move(handle);
}

Tensor make_variable(const std::string& name, const Tensor& value) {
  Tensor handle =
      make_variable(name, value.dtype(), PartialShape(value.shape().dims()));
  REQUIRE(variable_of(handle).set(value.clone()).ok());
  return handle;
}

Variable& variable_of(const Tensor& handle) {
  Variable* variable = state_object<Variable>(*handle.data<ResourceHandle>());
  REQUIRE(variable != nullptr);
  return *variable;
}

const Tensor& value_of(const Tensor& handle) {
  return variable_of(handle).value();
}

Result<Outputs> run_on_state(std::string_view op,
                             const std::vector<Tensor>& inputs, AttrMap attrs,
                             bool in_shards) {
  TAGFLOW_ASSIGN(const graph::OpDef* def, graph::OpRegistry::global().find(op));
  if (def->inputs.size() != inputs.size())
    return error(Code::kInternal, "{} inputs for {}", inputs.size(), op);
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TAGFLOW_ASSIGN(const graph::Endpoint from,
                   source(graph, def->inputs[i], inputs[i]));
    endpoints.push_back(from);
  }
  TAGFLOW_ASSIGN(graph::Node * node,
                 graph.add("op", op, endpoints, std::move(attrs)));
  TAGFLOW_ASSIGN(auto kernel, KernelRegistry::global().make(*node, "CPU"));
  std::vector<Tensor> values = inputs;
  Outputs outputs(size_t(node->num_outputs()));
  StepInfo step;
  LastFirst last_first;
  if (in_shards) step.parallel = &last_first;
  const Tag tag;
  KernelContext context(node, values, outputs, &step, &tag);
  if (kernel->may_be_expensive() && !(kernel->cost(context) >= 0))
    return error(Code::kInternal, "the estimated cost is not a number");
  TAGFLOW_RETURN_IF_ERROR(run_kernel(*kernel, context));
  return outputs;
}

Tensor must_run_on_state(std::string_view op, const std::vector<Tensor>& inputs,
                         AttrMap attrs) {
  Result<Outputs> outputs = run_on_state(op, inputs, std::move(attrs));
  INFO(outputs.status().to_string());
  REQUIRE(outputs.ok());
  return outputs->empty() ? Tensor() : (*outputs)[0];
}

}  // namespace tagflow::devices
