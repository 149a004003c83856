#include "apps/tagflow/model/tangent_graph.h"

#include <fmt/format.h>

#include "autodiff/jvp.h"
#include "graph/builder/ops_control_flow.h"

namespace tagflow::apps {
namespace {

using graph::Output;
using graph::Outputs;
using graph::Scope;

constexpr std::string_view kTangentError = "[gradients] ";

std::string name_of(const TangentRequest& request, size_t i) {
  return fmt::format("{}_{}", request.prefix, i);
}
std::string name_of_x(const TangentRequest& request, size_t i) {
  return fmt::format("{}_x_{}", request.prefix, i);
}

Status check_names(const graph::Graph& graph, const TangentRequest& request) {
  const auto check = [&](const std::string& name, const char* what,
                         const std::string& tensor) -> Status {
    if (graph.find(name) == nullptr) return {};
    return error(Code::kAlreadyExists,
                 "[gradients] the graph already has a node \"{}\", the "
                 "name of the tangent of {} \"{}\"",
                 name, what, tensor);
  };
  for (size_t i = 0; i < request.ys.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(check(name_of(request, i), "y", request.ys[i]));
  if (request.tangents.empty())
    for (size_t i = 0; i < request.xs.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(check(name_of_x(request, i), "x", request.xs[i]));
  return {};
}

// A Placeholder of the type and shape of x, or of its variable.
Result<Output> add_placeholder(const Scope& scope, const std::string& name,
                               const Output& x) {
  DataType dtype = remove_ref(x.dtype());
  PartialShape shape = x.shape();
  if (dtype == DataType::kResource) {
    const auto own = x.node()->attr<DataType>("dtype");
    if (!own.ok() || !x.node()->inputs().empty())
      return invalid_argument(
          "[gradients] x \"{}\" is not a variable of which the type is known: "
          "its tangent has to be given",
          x.name());
    dtype = *own;
    const auto known = x.node()->attr<PartialShape>("shape");
    shape = known.ok() ? *known : PartialShape();
  }
  return graph::ops::placeholder(scope.named(name), dtype, shape);
}

Result<Outputs> tangents_of_xs(const Scope& scope,
                               const TangentRequest& request) {
  if (!request.tangents.empty())
    return find_outputs(scope.graph(), request.tangents, kTangentError);
  TAGFLOW_ASSIGN(const Outputs xs,
                 find_outputs(scope.graph(), request.xs, kTangentError));
  Outputs made;
  for (size_t i = 0; i < xs.size(); ++i) {
    TAGFLOW_ASSIGN(const Output one,
                   add_placeholder(scope, name_of_x(request, i), xs[i]));
    made.push_back(one);
  }
  return made;
}

// Invalid ones if a y depends on no x.
Result<Outputs> tangents_of_order(const Scope& scope,
                                  const TangentRequest& request,
                                  const Outputs& of_xs,
                                  const graph::Limits& limits) {
  TAGFLOW_ASSIGN(Outputs last,
                 find_outputs(scope.graph(), request.ys, kTangentError));
  TAGFLOW_ASSIGN(const Outputs xs,
                 find_outputs(scope.graph(), request.xs, kTangentError));
  for (int order = 1; order <= request.order; ++order) {
    Outputs connected;
    for (const Output& y : last)
      if (y.valid()) connected.push_back(y);
    if (connected.empty()) break;
    TAGFLOW_RETURN_IF_ERROR(limit_graph(scope, limits));
    const Outputs made = autodiff::jvp(scope, connected, xs, of_xs);
    TAGFLOW_RETURN_IF_ERROR(scope.status());
    Outputs next;
    size_t at = 0;
    for (const Output& y : last)
      next.push_back(y.valid() ? made[at++] : Output());
    last = next;
  }
  return last;
}

}  // namespace

Result<NamedTangents> add_tangents(graph::Graph& graph,
                                   const TangentRequest& request,
                                   const graph::Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(check_names(graph, request));
  const Scope scope(graph);
  NamedTangents named;
  TAGFLOW_ASSIGN(named.of_xs, tangents_of_xs(scope, request));
  TAGFLOW_ASSIGN(const Outputs tangents,
                 tangents_of_order(scope, request, named.of_xs, limits));
  TAGFLOW_ASSIGN(const Outputs ys,
                 find_outputs(graph, request.ys, kTangentError));
  for (size_t i = 0; i < ys.size(); ++i) {
    const bool is_connected = tangents[i].valid();
    const graph::Endpoint source =
        is_connected ? tangents[i].endpoint() : ys[i].endpoint();
    TAGFLOW_ASSIGN(
        graph::Node* const node,
        graph.add(name_of(request, i), is_connected ? "Identity" : "ZerosLike",
                  {&source, 1}));
    named.of_ys.push_back({Output(node), is_connected});
  }
  return named;
}

}  // namespace tagflow::apps
