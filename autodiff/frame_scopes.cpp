#include "autodiff/frame_scopes.h"

#include "autodiff/arguments.h"
#include "graph/analysis/prune.h"

namespace tagflow::autodiff {

using graph::Context;
using graph::ScopeAccess;

FrameScopes::FrameScopes(Analysis& analysis, const graph::Scope& scope)
    : analysis_(analysis),
      begin_(analysis.graph().end_id()),
      root_(
          graph::Scope(analysis.graph()).sub_scope(ScopeAccess::name(scope))) {
  for (const Node* node : analysis.graph().nodes())
    if (const FrameId frame = analysis.output_frame(*node);
        frame != FrameId::kRoot)
      ScopeAccess::state(root_).set_context(node, context(frame));
}

const Status& FrameScopes::status() const {
  return ScopeAccess::state(root_).status();
}

Context* FrameScopes::context(FrameId frame) {
  if (frame == FrameId::kRoot) return nullptr;
  if (const auto known = contexts_.find(frame); known != contexts_.end())
    return known->second;
  const graph::StaticFrame& of = analysis_.frame(frame);
  Context made;
  made.kind = Context::Kind::kLoop;
  made.parent = context(of.parent);
  made.name = of.name;
  // It is live in each iteration, including the last one, since the predicate
  // may depend on added nodes.
  made.pivot = of.merges.empty() ? nullptr : of.merges.front();
  made.frame_name = of.name;
  made.parallel_iterations = of.parallel_iterations;
  return contexts_[frame] =
             ScopeAccess::state(root_).new_context(std::move(made));
}

Region& FrameScopes::region(FrameId frame) {
  auto& region = regions_[frame];
  if (region == nullptr)
    region = std::make_unique<PlainRegion>(
        analysis_, frame, ScopeAccess::inside(root_, context(frame)));
  return *region;
}

Node* FrameScopes::add(graph::BuilderState::NodeSpec spec, FrameId frame,
                       FrameId outputs) {
  if (!root_.ok()) return nullptr;
  auto made = ScopeAccess::add(root_, std::move(spec), context(frame));
  if (!made.ok()) {
    root_.fail(std::move(made).status());
    return nullptr;
  }
  ScopeAccess::state(root_).set_context(*made, context(outputs));
  return *made;
}

void FrameScopes::hand_over(FrameId frame, const graph::Scope& scope,
                            const Node& like) {
  if (frame == FrameId::kRoot) return;
  graph::BuilderState& state = ScopeAccess::state(scope);
  Context* const users = state.context_of(&like);
  const Context* const own = context(frame);
  for (const Node* node : analysis_.graph().nodes())
    if (node->id() >= begin_ &&
        ScopeAccess::state(root_).context_of(node) == own)
      state.set_context(node, users);
}

void FrameScopes::remove_all_but(const graph::Outputs& outputs) {
  graph::Graph& graph = analysis_.graph();
  const graph::NodeSet needed =
      graph::prune(graph, endpoints_of(outputs), {}, {});
  std::vector<Node*> rest;
  for (Node* node : graph.nodes())
    if (node->id() >= begin_ && !needed.contains(*node)) rest.push_back(node);
  graph.remove(rest);
}

}  // namespace tagflow::autodiff
