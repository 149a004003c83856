#include "apps/tagflow/model/gradient_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/tagflow/model/model.h"
#include "autodiff/gradients.h"
#include "graph/builder/growth.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/function.h"

namespace tagflow::apps {
namespace {

using graph::Output;
using graph::Outputs;

constexpr std::string_view kGradientError = "[gradients] ";

std::string gradient_name(const GradientRequest& request, size_t i) {
  return fmt::format("{}_{}", request.prefix, i);
}

Status check_gradient_names(const graph::Graph& graph,
                            const GradientRequest& request) {
  for (size_t i = 0; i < request.xs.size(); ++i) {
    const std::string name = gradient_name(request, i);
    if (graph.find(name) != nullptr)
      return error(Code::kAlreadyExists,
                   "[gradients] the graph already has a node \"{}\", the "
                   "name of the gradient by \"{}\"",
                   name, request.xs[i]);
  }
  return {};
}

// The gradients of one order.
struct OrderGradients {
  Outputs ys;    // what was differentiated
  Outputs by_x;  // invalid ones if nothing depends on the x
};

// Finds the xs again, since making the gradients of the previous order may have
// replaced a node by another one of its name.
Result<OrderGradients> differentiate(const graph::Scope& scope, Outputs ys,
                                     const GradientRequest& request,
                                     KeptValues* kept) {
  // A constant depends on nothing.
  if (ys.empty()) ys = graph::ops::constant(scope, 0.0f);
  TAGFLOW_ASSIGN(const Outputs xs,
                 find_outputs(scope.graph(), request.xs, kGradientError));
  if (kept != nullptr) kept->clear();
  autodiff::GradientOptions options;
  options.kept = kept;
  options.save = request.save;
  Outputs by_x = autodiff::dense_gradients(scope, ys, xs, options);
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  return OrderGradients{std::move(ys), std::move(by_x)};
}

Status in_order(Status status, int order) {
  return std::move(status).with_prefix(fmt::format("order {}: ", order));
}

Result<OrderGradients> gradients_of_order(const graph::Scope& scope,
                                          const GradientRequest& request,
                                          KeptValues* kept,
                                          const graph::Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(limit_graph(scope, limits));
  TAGFLOW_ASSIGN(Outputs ys,
                 find_outputs(scope.graph(), request.ys, kGradientError));
  TAGFLOW_ASSIGN(OrderGradients last,
                 differentiate(scope, std::move(ys), request, kept));
  for (int order = 2; order <= request.order; ++order) {
    TAGFLOW_RETURN_IF_ERROR(in_order(limit_graph(scope, limits), order));
    Outputs connected;
    for (const Output& gradient : last.by_x)
      if (gradient.valid()) connected.push_back(gradient);
    Result<OrderGradients> next =
        differentiate(scope, std::move(connected), request, kept);
    if (!next.ok()) return in_order(std::move(next).status(), order);
    last = *std::move(next);
  }
  return last;
}

Result<Output> zeros_of(const graph::Scope& scope, const Outputs& ys,
                        const std::string& x) {
  TAGFLOW_ASSIGN(const Outputs xs,
                 find_outputs(scope.graph(), {x}, kGradientError));
  autodiff::GradientOptions options;
  options.zeros_if_unconnected = true;
  const Outputs zeros = autodiff::dense_gradients(scope, ys, xs, options);
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  return zeros[0];
}

}  // namespace

Status limit_graph(const graph::Scope& scope, const graph::Limits& limits) {
  size_t in_functions = 0;
  for (const graph::FunctionDef* function : scope.graph().library().functions())
    in_functions += function->nodes.size();
  graph::Limits rest = limits;
  rest.max_nodes -= std::min(limits.max_nodes, in_functions);
  graph::limit_growth(scope, rest);
  if (scope.graph().size() <= rest.max_nodes) return {};
  return error(Code::kResourceExhausted,
               "[gradients] the graph has {} nodes, and its functions {}: the "
               "limit is {}",
               scope.graph().size(), in_functions, limits.max_nodes);
}

Result<std::vector<NamedGradient>> add_gradients(graph::Graph& graph,
                                                 const GradientRequest& request,
                                                 KeptValues* kept,
                                                 const graph::Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(check_gradient_names(graph, request));
  const graph::Scope scope(graph);
  TAGFLOW_ASSIGN(const OrderGradients gradients,
                 gradients_of_order(scope, request, kept, limits));
  std::vector<NamedGradient> named;
  for (size_t i = 0; i < request.xs.size(); ++i) {
    Output gradient = gradients.by_x[i];
    const bool is_connected = gradient.valid();
    if (!is_connected) {
      TAGFLOW_ASSIGN(gradient, zeros_of(scope, gradients.ys, request.xs[i]));
    }
    const graph::Endpoint source = gradient.endpoint();
    TAGFLOW_ASSIGN(
        graph::Node* const node,
        graph.add(gradient_name(request, i), "Identity", {&source, 1}));
    named.push_back({Output(node), is_connected});
  }
  return named;
}

Result<Outputs> find_outputs(const graph::Graph& graph,
                             const std::vector<std::string>& names,
                             std::string_view prefix) {
  Outputs outputs;
  for (const std::string& name : names) {
    const Result<graph::Endpoint> found = graph.endpoint(name);
    if (found.ok()) {
      outputs.push_back(Output(*found));
      continue;
    }
    const std::string node =
        name.substr(0, std::min(name.rfind(':'), name.size()));
    const std::string why = explain_inner_name(graph, node);
    Status status = why.empty() ? found.status()
                                : error(found.status().code(),
                                        "[graph] no node \"{}\"{}", node, why);
    return std::move(status).with_prefix(prefix);
  }
  return outputs;
}

}  // namespace tagflow::apps
