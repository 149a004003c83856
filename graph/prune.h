// Which nodes a run needs.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// A set of nodes of one graph. Thread-compatible.
class NodeSet {
 public:
  NodeSet() = default;
  bool contains(const Node& node) const {
    return node.id() < bits_.size() && bits_[node.id()];
  }
  // True where it was not there yet.
  bool insert(const Node& node);
  size_t size() const { return size_; }

 private:
  std::vector<bool> bits_;  // by node id
  size_t size_ = 0;
};

// The nodes that the fetches and targets need: they and all that leads to
// them, along data, control and back edges. An edge from a fed output is not
// followed, nor a control edge from a Placeholder that is fed; so a fetch that
// is fed needs nothing.
// REQUIRES: all are of this graph.
NodeSet prune(const Graph& graph, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds);

}  // namespace tagflow::graph
