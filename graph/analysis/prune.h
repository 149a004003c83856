// Finds the nodes that a run needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/paged_table.h"

namespace tagflow::graph {

// A set of nodes of one graph. Memory depends on its size. Thread-compatible.
class NodeSet {
 public:
  NodeSet() = default;
  bool contains(const Node& node) const {
    return (words_.at(node.id() / kBits) >> (node.id() % kBits) & 1) != 0;
  }
  // Returns true if it is new.
  bool insert(const Node& node);
  size_t size() const { return size_; }

 private:
  static constexpr size_t kBits = 64;

  PagedTable<uint64_t> words_;  // bits, by node id
  size_t size_ = 0;
};

// The nodes that the fetches and targets need: they themselves and all nodes
// that they depend on, along data, control and back edges. An edge from a fed
// output is not followed, nor a control edge from a fed Placeholder; so a fed
// fetch needs no nodes. REQUIRES: all are in this graph.
NodeSet prune(const Graph& graph, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds);
// The same, as a list in order of insertion.
std::vector<Node*> needed_nodes(const Graph& graph,
                                std::span<const Endpoint> fetches,
                                std::span<Node* const> targets,
                                std::span<const Endpoint> feeds);

}  // namespace tagflow::graph
