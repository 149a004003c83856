#include "autodiff/jvp.h"

#include "autodiff/arguments.h"
#include "autodiff/liveness_check.h"
#include "autodiff/pushforward.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

using graph::Outputs;
using graph::Scope;

namespace {

// A tangent is computed beside its tensor: it cannot enter an existing loop.
Status check_frames(const Analysis& analysis, const PreparedGraph& made) {
  for (const Endpoint& x : made.xs)
    if (analysis.output_frame(*x.node) != made.frame)
      return invalid_argument(
          "[gradients] x \"{}\" is outside of the loop in which the ys are, "
          "where it has no tangent",
          Output(x).name());
  return {};
}

Status check_tangents(const Scope& scope, const Analysis& analysis,
                      const Outputs& xs, const Outputs& tangents) {
  for (size_t i = 0; i < xs.size(); ++i) {
    const Output& tangent = tangents[i];
    if (!tangent.valid()) continue;
    if (!tangent.has_tensor() || !scope.graph().owns(tangent.node()))
      return invalid_argument(
          "[gradients] tangent {} is not a tensor of the graph", i);
    TAGFLOW_RETURN_IF_ERROR(check_same_kind(analysis, tangent, xs[i],
                                            fmt::format("tangent {}", i), "x"));
  }
  return {};
}

// A sum that is a tangent may have terms that are live in more cases. The
// tangent of a record is made by a call within branches that are not known to
// be all alternatives.
Status check_tangents(const Scope& scope, const Pushforward& walk) {
  std::vector<GradientPair> pairs;
  for (const auto& [tensor, tangent] : walk.tangents())
    if (tensor.node->op() != "_Call" &&
        !tensor.node->op().ends_with("PartitionedCall"))
      pairs.emplace_back(tensor, tangent.endpoint());
  graph::Graph& graph = scope.graph();
  return check_liveness(graph, graph::NodeId(graph.end_id()), pairs);
}

Result<Outputs> walk_forward(const Scope& scope, const Outputs& ys,
                             const Outputs& all_xs, const Outputs& tangents,
                             const ForwardOptions& options) {
  if (tangents.size() != all_xs.size())
    return invalid_argument("[gradients] there are {} tangents for {} xs",
                            tangents.size(), all_xs.size());
  const Arguments all{ys, all_xs, options.stop_gradients};
  TAGFLOW_RETURN_IF_ERROR(all.check(scope));
  // Paths from xs whose tangent is zero are skipped.
  Tensors with_tangents{
      endpoints_of(ys), {}, endpoints_of(options.stop_gradients)};
  Outputs given;
  for (size_t i = 0; i < all_xs.size(); ++i) {
    if (!tangents[i].valid()) continue;
    with_tangents.xs.push_back(all_xs[i].endpoint());
    given.push_back(tangents[i]);
  }
  TAGFLOW_ASSIGN(const PreparedGraph made, prepare(scope, with_tangents));
  TAGFLOW_RETURN_IF_ERROR(check_frames(*made.analysis, made));
  TAGFLOW_RETURN_IF_ERROR(
      check_tangents(scope, *made.analysis, all_xs, tangents));
  FrameScopes scopes(*made.analysis, scope);
  Pushforward walk(*made.analysis, *made.paths, made.frame, scopes);
  for (size_t i = 0; i < given.size(); ++i)
    if (made.paths->has(made.xs[i])) walk.seed(made.xs[i], given[i]);
  TAGFLOW_RETURN_IF_ERROR(walk.run());
  Outputs results;
  for (const Output& y : ys) {
    Output result = walk.tangent(y.endpoint());
    if (!result.valid() && options.zeros_if_unconnected)
      result = walk.zeros(y.endpoint());
    results.push_back(result);
  }
  TAGFLOW_RETURN_IF_ERROR(scopes.status());
  if (options.check_liveness)
    TAGFLOW_RETURN_IF_ERROR(check_tangents(scope, walk));
  scopes.remove_all_but(results);
  scopes.hand_over(made.frame, scope, *ys[0].node());
  return results;
}

}  // namespace

Outputs jvp(const Scope& scope, const Outputs& ys, const Outputs& xs,
            const Outputs& tangents, const ForwardOptions& options) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(scope, "jvp");
    auto made = walk_forward(inside, ys, xs, tangents, options);
    if (made.ok()) return *std::move(made);
    scope.fail(std::move(made).status());
  }
  return Outputs(std::vector<Output>(ys.size()));
}

}  // namespace tagflow::autodiff
