// Which nodes a run needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/paged_table.h"

namespace tagflow::graph {

// A set of nodes of one graph. It costs by what is in it. Thread-compatible.
class NodeSet {
 public:
  NodeSet() = default;
  bool contains(const Node& node) const {
    return (words_.at(node.id() / kBits) >> (node.id() % kBits) & 1) != 0;
  }
  // True where it was not there yet.
  bool insert(const Node& node);
  size_t size() const { return size_; }

 private:
  static constexpr size_t kBits = 64;

  PagedTable<uint64_t> words_;  // bits, by node id
  size_t size_ = 0;
};

// The nodes that the fetches and targets need: they and all that leads to
// them, along data, control and back edges. An edge from a fed output is not
// followed, nor a control edge from a Placeholder that is fed; so a fetch that
// is fed needs nothing.
// REQUIRES: all are of this graph.
NodeSet prune(const Graph& graph, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds);
// The same, as a list in order of insertion.
std::vector<Node*> needed_nodes(const Graph& graph,
                                std::span<const Endpoint> fetches,
                                std::span<Node* const> targets,
                                std::span<const Endpoint> feeds);

}  // namespace tagflow::graph
