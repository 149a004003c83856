#include "autodiff/gradients.h"

#include "autodiff/arguments.h"
#include "autodiff/backprop.h"
#include "autodiff/liveness_check.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Outputs;
using graph::Scope;

namespace {

// Ones where none is given: of y itself, so that they are as live as y.
Result<Output> grad_of(const Scope& scope, const Analysis& analysis,
                       const Output& y, size_t i,
                       const GradientOptions& options) {
  if (i >= options.grad_ys.size() || !options.grad_ys[i].valid())
    return ops::ones_like(scope.with_device(y.node()->device()), y);
  TAGFLOW_RETURN_IF_ERROR(check_same_kind(analysis, options.grad_ys[i], y,
                                          fmt::format("grad_y {}", i), "y"));
  return options.grad_ys[i];
}

// Gradients that were given may be live where they please.
Status check_walk(graph::Graph& graph, const Backprop& walk,
                  graph::NodeId first, bool are_all_made) {
  std::vector<GradientPair> pairs;
  if (are_all_made)
    for (const auto& [tensor, gradient] : walk.totals())
      pairs.emplace_back(tensor, gradient.values.endpoint());
  return check_liveness(graph, first, pairs);
}

Result<std::vector<Gradient>> walk_back(const Scope& scope,
                                        const Arguments& arguments,
                                        const GradientOptions& options,
                                        bool are_dense) {
  const Outputs& ys = arguments.ys;
  if (options.grad_ys.size() > ys.size())
    return invalid_argument("[gradients] there are {} grad_ys for {} ys",
                            options.grad_ys.size(), ys.size());
  TAGFLOW_ASSIGN(const Prepared made, prepare(scope, arguments));
  const auto first = graph::NodeId(scope.graph().end_id());
  Differentiation all{*made.analysis, *made.paths,
                      graph::ScopeAccess::name(scope)};
  PlainRegion region(*made.analysis, made.frame, scope);
  Backprop walk(all, region);
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!made.paths->has(ys[i].endpoint())) continue;
    TAGFLOW_ASSIGN(const Output grad,
                   grad_of(scope, *made.analysis, ys[i], i, options));
    walk.seed(ys[i].endpoint(), {grad});
  }
  walk.run();
  std::vector<Gradient> results;
  for (const Output& x : arguments.xs) {
    Gradient result = walk.total(x.endpoint());
    if (!result.valid() && options.zeros_if_unconnected)
      result = {region.zeros(x.endpoint())};
    if (are_dense) result = {walk.dense(x.endpoint(), result)};
    results.push_back(result);
  }
  if (options.kept != nullptr)
    for (KeptValue& kept : made.analysis->take_notes())
      options.kept->push_back(std::move(kept));
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  if (options.check_liveness)
    TAGFLOW_RETURN_IF_ERROR(
        check_walk(scope.graph(), walk, first, options.grad_ys.empty()));
  return results;
}

std::vector<Gradient> make_gradients(const Scope& scope, const Outputs& ys,
                                     const Outputs& xs,
                                     const GradientOptions& options,
                                     bool are_dense) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(
        scope.without_control_dependencies(), "gradients");
    auto made =
        walk_back(inside, {ys, xs, options.stop_gradients}, options, are_dense);
    if (made.ok()) return *std::move(made);
    scope.fail(std::move(made).status());
  }
  return std::vector<Gradient>(xs.size());
}

}  // namespace

std::vector<Gradient> gradients(const Scope& scope, const Outputs& ys,
                                const Outputs& xs,
                                const GradientOptions& options) {
  return make_gradients(scope, ys, xs, options, false);
}

Outputs dense_gradients(const Scope& scope, const Outputs& ys,
                        const Outputs& xs, const GradientOptions& options) {
  Outputs results;
  for (const Gradient& gradient : make_gradients(scope, ys, xs, options, true))
    results.push_back(gradient.values);
  return results;
}

}  // namespace tagflow::autodiff
