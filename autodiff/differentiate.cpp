#include "autodiff/differentiate.h"

#include "autodiff/backprop.h"
#include "autodiff/lower_calls.h"
#include "autodiff/save_plan.h"
#include "graph/builder/scope_access.h"
#include "graph/loop_shapes.h"

namespace tagflow::autodiff {

using graph::Endpoint;
using graph::Scope;

namespace {

// Whether a loop is still being built, and this is called in its body.
bool has_open_loop(const graph::Graph& graph) {
  for (const Node* node : graph.nodes())
    for (const Endpoint& input : node->inputs())
      if (input.node == nullptr) return true;
  return false;
}

// Where xs and ys are.
Result<FrameId> common_frame(const Analysis& analysis,
                             const Differentiand& what) {
  const Endpoint& first = what.ys.front();
  const FrameId frame = analysis.output_frame(*first.node);
  const auto name = [&](FrameId id) {
    return id == FrameId::kRoot ? std::string("outside of all loops")
                                : fmt::format("in the loop of frame \"{}\"",
                                              analysis.frame(id).name);
  };
  for (const auto& [list, kind] :
       {std::pair(&what.ys, "y"), std::pair(&what.xs, "x")})
    for (const Endpoint& tensor : *list)
      if (const FrameId own = analysis.output_frame(*tensor.node); own != frame)
        return invalid_argument(
            "[gradients] y \"{}\" is {}, but {} \"{}\" is {}",
            first.to_string(), name(frame), kind, tensor.to_string(),
            name(own));
  return frame;
}

}  // namespace

Result<std::vector<Gradient>> differentiate(const Scope& scope,
                                            const Differentiand& what) {
  graph::Graph& graph = scope.graph();
  TAGFLOW_RETURN_IF_ERROR(lower_calls(graph, what.xs, what.ys));
  for (const auto& [frame, text] : what.save)
    TAGFLOW_RETURN_IF_ERROR(set_save(graph, frame, text));
  if (!has_open_loop(graph))
    TAGFLOW_RETURN_IF_ERROR(graph::infer_loop_shapes(graph));
  TAGFLOW_ASSIGN(const auto analysis, Analysis::make(graph));
  TAGFLOW_ASSIGN(const FrameId frame, common_frame(*analysis, what));
  const Paths::Set stops(what.stops.begin(), what.stops.end());
  const Paths paths(*analysis, frame, what.xs, what.ys, stops);
  if (const Node* pop = paths.hidden_pop(what.ys))
    return error(Code::kUnimplemented,
                 "[gradients] node \"{}\" pops what a value that depends on an "
                 "x was pushed as: mutable stacks, as TensorFlow's own "
                 "gradients of loops have them, have no gradient",
                 pop->name());
  TAGFLOW_ASSIGN(const Parts parts,
                 Parts::find(*analysis, paths, what.xs, what.ys));
  Differentiation all{*analysis, paths, parts, stops,
                      graph::ScopeAccess::name(scope)};
  PlainRegion region(*analysis, frame, scope);
  Backprop walk(all, region);
  for (size_t i = 0; i < what.sums.size(); ++i)
    if (what.sums[i].valid()) walk.begin_sum(what.xs[i], what.sums[i]);
  for (size_t i = 0; i < what.ys.size(); ++i)
    if (paths.has(what.ys[i])) walk.seed(what.ys[i], what.grad_of(i));
  walk.run();
  walk.end_sums();
  std::vector<Gradient> results;
  for (const Endpoint& x : what.xs) {
    Gradient result = walk.total(x);
    if (!result.valid() && what.zeros_if_unconnected)
      result = {region.zeros(x)};
    if (results.size() < what.num_dense) result = {walk.dense(x, result)};
    results.push_back(result);
  }
  if (what.kept != nullptr)
    for (KeptValue& kept : analysis->take_notes())
      what.kept->push_back(std::move(kept));
  if (scope.ok()) return results;
  return scope.status();
}

}  // namespace tagflow::autodiff
