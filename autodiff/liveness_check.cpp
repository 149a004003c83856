#include "autodiff/liveness_check.h"

#include "autodiff/analysis.h"

namespace tagflow::autodiff {

namespace {

// Terms that are not equally live would be lost or dead.
Status check_sum(Analysis& analysis, const Node& sum) {
  for (const Endpoint& term : sum.inputs())
    if (analysis.live(term) != analysis.live(sum))
      return error(Code::kInternal,
                   "[gradients] the sum \"{}\" has a term \"{}\" that is "
                   "not live exactly where the other terms are",
                   sum.name(), term.node->name());
  return {};
}

}  // namespace

Status check_liveness(Graph& graph, graph::NodeId first,
                      const std::vector<GradientPair>& pairs) {
  TAGFLOW_ASSIGN(const auto analysis, Analysis::make(graph));
  for (const Node* node : graph.nodes())
    if (node->id() >= first && node->op() == "AddN")
      TAGFLOW_RETURN_IF_ERROR(check_sum(*analysis, *node));
  for (const auto& [tensor, gradient] : pairs)
    if (analysis->live(tensor) != analysis->live(gradient))
      return error(Code::kInternal,
                   "[gradients] the gradient \"{}\" is not live exactly "
                   "where \"{}\" is",
                   gradient.node->name(), tensor.node->name());
  return {};
}

}  // namespace tagflow::autodiff
