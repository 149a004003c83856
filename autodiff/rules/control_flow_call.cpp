// The rules of calls of functions with a gradient function in the library, and
// of recursive functions, whose gradients use a record. All other calls are
// lowered before the walk.
#include "autodiff/rules/control_flow_call.h"

#include <algorithm>

#include "autodiff/region.h"
#include "graph/function.h"
#include "graph/functions/extended.h"
#include "graph/stored_gradient.h"

namespace tagflow::autodiff {
namespace {

// The gradient function takes the arguments and the gradients of the results,
// and gives those of the arguments.
void call_grad(RuleContext& r, std::string_view function) {
  const std::string gradient(
      r.region().analysis().graph().library().gradient_of(function));
  graph::Inputs inputs;
  std::vector<DataType> in, out;
  for (int i = 0; i < r.num_inputs(); ++i) {
    inputs.add(r.input(i));
    in.push_back(r.input_dtype(i));
    out.push_back(r.input_dtype(i));
  }
  for (int port = 0; port < r.num_outputs(); ++port) {
    inputs.add(r.grad(port));
    in.push_back(r.node().output_dtypes()[size_t(port)]);
  }
  const graph::OpResult call =
      r.scope().op("PartitionedCall", inputs,
                   {{"Tin", in}, {"Tout", out}, {"f", FunctionRef{gradient}}});
  for (int i = 0; i < r.num_inputs(); ++i) r.set(i, call[i]);
}

// See Note [Gradients of recursion].
void recorded_call_grad(RuleContext& r, const CalledFunction& called) {
  graph::Inputs inputs{r.output(r.num_outputs() - 1)};
  std::vector<DataType> in{DataType::kVariant}, out;
  for (size_t port = 0; port < called.ys.size(); ++port) {
    if (!called.ys[port]) continue;
    inputs.add(r.grad(int(port)));
    in.push_back(r.node().output_dtypes()[port]);
  }
  for (size_t i = 0; i < called.xs.size(); ++i)
    if (called.xs[i]) out.push_back(called.types[i]);
  const graph::OpResult call =
      r.scope().op("PartitionedCall", inputs,
                   {{"Tin", in},
                    {"Tout", out},
                    {"f", FunctionRef{called.gradient, {}}},
                    {std::string(graph::kOwnFrameAttr), true}});
  int next = 0;
  for (size_t i = 0; i < called.xs.size(); ++i)
    if (called.xs[i]) r.set(int(i), call[next++]);
}

void call_rule(RuleContext& r) {
  if (const CalledFunction* called = r.region().analysis().called(r.node()))
    recorded_call_grad(r, *called);
  else
    call_grad(r, r.attr<FunctionRef>("f").name);
}

// The gradient of an output that has none is zero; one without a derivative is
// given for its own, which the function does not use.
Output grad_or_output(RuleContext& r, int port) {
  const DataType type = r.node().output_dtypes()[size_t(port)];
  return is_numeric(type) ? r.grad(port) : r.output(port);
}

}  // namespace

// See Note [Stored gradients] in graph/stored_gradient.h.
void stored_gradient_rule(RuleContext& r) {
  const auto stored =
      graph::stored_gradient(r.node(), r.region().analysis().graph().library());
  if (!stored.ok()) return r.scope().fail(stored.status());
  if (std::ranges::none_of(stored->inputs,
                           [&](int64_t input) { return r.wants(int(input)); }))
    return;
  graph::Inputs inputs;
  std::vector<DataType> in, out;
  for (int i = 0; i < r.num_inputs(); ++i) {
    inputs.add(size_t(i) < stored->outputs ? grad_or_output(r, i) : r.input(i));
    in.push_back(r.input_dtype(i));
  }
  for (const int64_t input : stored->inputs) out.push_back(in[size_t(input)]);
  const graph::OpResult call = r.scope().op(
      "PartitionedCall", inputs,
      {{"Tin", in}, {"Tout", out}, {"f", FunctionRef{stored->function}}});
  for (size_t i = 0; i < out.size(); ++i)
    r.set(int(stored->inputs[i]), call[int(i)]);
}

void add_call_rules(RuleTable& table) {
  table.add({"PartitionedCall", "StatefulPartitionedCall"}, call_rule);
}

void function_rule(RuleContext& r) { call_grad(r, r.node().op()); }

}  // namespace tagflow::autodiff
