// Calls of functions that name a function for their gradient in the library.
// All other calls are lowered before the walk.
#include "autodiff/region.h"
#include "autodiff/rule.h"
#include "autodiff/rules/rules.h"
#include "graph/function.h"

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

}  // namespace

void add_call_rules(RuleTable& table) {
  for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"})
    table.add(op, [](RuleContext& r) {
      call_grad(r, r.attr<FunctionRef>("f").name);
    });
}

void function_rule(RuleContext& r) { call_grad(r, r.node().op()); }

}  // namespace tagflow::autodiff
