// FrameScopes: the scopes in which nodes are added to the loops of a graph.
#pragma once

#include <memory>
#include <unordered_map>

#include "autodiff/analysis.h"
#include "autodiff/region.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

// Has a scope for each frame of the graph, also of a graph from a file. Nodes
// made in a scope may read tensors of its frame and of the frames around it,
// which enter as constants of the loop. Thread-compatible.
class FrameScopes {
 public:
  // The names of new nodes begin with that of `scope`; errors are kept here.
  // `analysis` outlives this.
  FrameScopes(Analysis& analysis, const graph::Scope& scope);

  const Status& status() const;
  // The frame as a region whose values can be read directly.
  Region& region(FrameId frame);
  const graph::Scope& scope(FrameId frame) { return region(frame).scope(); }
  // Adds a node that reads tensors of `frame`, and whose outputs are in
  // `outputs`. Null after an error.
  Node* add(graph::BuilderState::NodeSpec spec, FrameId frame, FrameId outputs);
  // Tells the builder of `scope`, which builds the loop, about the nodes added
  // to the frame: they count as part of the branch or loop that `like` is in.
  void hand_over(FrameId frame, const graph::Scope& scope, const Node& like);
  // Removes the added nodes that these outputs do not need.
  void remove_all_but(const graph::Outputs& outputs);

 private:
  graph::Context* context(FrameId frame);

  Analysis& analysis_;
  const size_t begin_;  // ids from here on were added
  // Over the same graph as the user's scope, with contexts of its own: those of
  // the user's scope know nothing of loops that come from a file.
  const graph::Scope root_;
  std::unordered_map<FrameId, graph::Context*> contexts_;
  std::unordered_map<FrameId, std::unique_ptr<Region>> regions_;
};

}  // namespace tagflow::autodiff
