// Topological orders of a graph's nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Whether data input `index` of `node` is a loop's back edge, from a
// NextIteration into a Merge.
bool is_back_edge(const Node& node, size_t index);

// Every node comes after its inputs, except over back edges; otherwise in order
// of insertion. InvalidArgument with the nodes, if other edges form a cycle.
Result<std::vector<Node*>> topological_order(const Graph& graph);
// The same for the nodes from position `first` on. REQUIRES: no earlier node
// has one of these as input, except over back edges.
Result<std::vector<Node*>> topological_order(const Graph& graph, size_t first);

// By node id: the nodes that read an output of the node, or wait for it.
using Successors = std::vector<std::vector<const Node*>>;
Successors find_successors(const Graph& graph);
// By node id: whether the node is in `nodes` or comes after one of them. If
// `is_end` is given, edges from nodes for which it is true are not followed.
std::vector<bool> all_after(
    const Successors& successors, std::vector<const Node*> nodes,
    const std::function<bool(const Node&)>& is_end = nullptr);

// For each of some things, numbered from 0, the things that precede it.
class Precedence {
 public:
  // Reserves room for that many.
  Precedence(size_t things, size_t pairs) {
    first_.reserve(things + 1);
    before_.reserve(pairs);
    first_.push_back(0);
  }
  // Adds a predecessor of thing 0; after end_list(), of thing 1; and so on.
  void add(size_t thing) { before_.push_back(uint32_t(thing)); }
  void end_list() { first_.push_back(before_.size()); }

  size_t size() const { return first_.size() - 1; }
  std::span<const uint32_t> of(size_t thing) const {
    return std::span(before_).subspan(first_[thing],
                                      first_[thing + 1] - first_[thing]);
  }
  // For each thing, the things that it precedes.
  Precedence reversed() const;

 private:
  std::vector<size_t> first_;  // in before_, and the end of the last list
  std::vector<uint32_t> before_;
};

// The order of things without a graph; `name` is for the message. REQUIRES:
// fewer than 2^32 things.
Result<std::vector<uint32_t>> topological_order(
    const Precedence& before,
    const std::function<std::string_view(size_t)>& name);

}  // namespace tagflow::graph
