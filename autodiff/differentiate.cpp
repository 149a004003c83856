#include "autodiff/differentiate.h"

#include "autodiff/backprop.h"
#include "autodiff/gradient_arrays.h"
#include "autodiff/liveness_check.h"
#include "autodiff/lower_calls.h"
#include "autodiff/mutable_stacks.h"
#include "autodiff/save_plan.h"
#include "graph/builder/scope_access.h"
#include "graph/dereference.h"
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

struct Prepared {
  std::unique_ptr<Analysis> analysis;
  FrameId frame;
  Paths paths;
};

// The nodes whose gradients may need what they read of a reference, as it was
// when they ran: for a later read may give another version. What an Identity
// has read is what it gives.
std::vector<Node*> readers_of_references(const graph::Graph& graph,
                                         const Paths& paths) {
  std::vector<Node*> readers;
  for (Node* node : graph.nodes()) {
    bool is_needed = node->is_switch();
    for (int port = 0; port < node->num_outputs(); ++port)
      is_needed = is_needed || paths.has({node, port});
    if (!is_needed || node->is_identity()) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i)
      if (graph::reads_reference(*node, i)) {
        readers.push_back(node);
        break;
      }
  }
  return readers;
}

// Makes of the graph between xs and ys one of ops that have rules, and loops.
Result<Prepared> prepare(graph::Graph& graph, const Differentiand& what) {
  const Paths::Set stops(what.stops.begin(), what.stops.end());
  for (bool is_first = true;; is_first = false) {
    TAGFLOW_RETURN_IF_ERROR(lower_calls(graph, what.xs, what.ys));
    if (is_first)
      for (const auto& [frame, text] : what.save)
        TAGFLOW_RETURN_IF_ERROR(set_save(graph, frame, text));
    if (!has_open_loop(graph))
      TAGFLOW_RETURN_IF_ERROR(graph::infer_loop_shapes(graph));
    TAGFLOW_ASSIGN(auto analysis, Analysis::make(graph));
    TAGFLOW_ASSIGN(const FrameId frame, common_frame(*analysis, what));
    Paths paths(*analysis, frame, what.xs, what.ys, stops);
    // What is replaced may show more that is to be.
    if (const auto pops = paths.hidden_pops(what.ys); !pops.empty()) {
      TAGFLOW_RETURN_IF_ERROR(make_stacks_persistent(*analysis, pops));
      continue;
    }
    if (const auto readers = readers_of_references(graph, paths);
        !readers.empty()) {
      TAGFLOW_RETURN_IF_ERROR(graph::dereference(graph, readers));
      continue;
    }
    TAGFLOW_RETURN_IF_ERROR(check_gradient_arrays(*analysis, paths, what.ys));
    return Prepared{std::move(analysis), frame, std::move(paths)};
  }
}

Status check_walk(graph::Graph& graph, const Backprop& walk,
                  graph::NodeId first, bool has_own_grads) {
  std::vector<GradientPair> pairs;
  if (!has_own_grads)
    for (const auto& [tensor, gradient] : walk.totals())
      pairs.emplace_back(tensor, gradient.values.endpoint());
  return check_liveness(graph, first, pairs);
}

}  // namespace

Result<std::vector<Gradient>> differentiate(const Scope& scope,
                                            const Differentiand& what) {
  graph::Graph& graph = scope.graph();
  TAGFLOW_ASSIGN(const Prepared prepared, prepare(graph, what));
  const auto& [analysis, frame, paths] = prepared;
  const auto first = graph::NodeId(graph.end_id());
  const Paths::Set stops(what.stops.begin(), what.stops.end());
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
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  if (what.check_liveness)
    TAGFLOW_RETURN_IF_ERROR(check_walk(graph, walk, first, what.has_own_grads));
  return results;
}

}  // namespace tagflow::autodiff
