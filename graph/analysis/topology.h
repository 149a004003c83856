// The order in which a graph's nodes can run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Data input `index` of `node` is a loop's back edge: from a NextIteration
// into a Merge.
bool is_back_edge(const Node& node, size_t index);

// Every node after its inputs, back edges apart; otherwise as inserted.
// InvalidArgument where other edges form a cycle, naming its nodes.
Result<std::vector<Node*>> topological_order(const Graph& graph);
// The same of the nodes from position `first` on: those before it are there.
// REQUIRES: none of those has a later one as input, back edges apart.
Result<std::vector<Node*>> topological_order(const Graph& graph, size_t first);

// By node id: what reads an output of the node, or waits for it.
using Successors = std::vector<std::vector<const Node*>>;
Successors find_successors(const Graph& graph);
// By node id: these, and all that comes after them. What comes after a node of
// which `is_end` is true, if it is given, counts as little as if no edge led
// there.
std::vector<bool> all_after(
    const Successors& successors, std::vector<const Node*> nodes,
    const std::function<bool(const Node&)>& is_end = nullptr);

// For each of some things, numbered from 0 on, those that come before it.
class Precedence {
 public:
  // With room for that many.
  Precedence(size_t things, size_t pairs) {
    first_.reserve(things + 1);
    before_.reserve(pairs);
    first_.push_back(0);
  }
  // What comes before thing 0; after end_list(), before thing 1; and so on.
  void add(size_t thing) { before_.push_back(uint32_t(thing)); }
  void end_list() { first_.push_back(before_.size()); }

  size_t size() const { return first_.size() - 1; }
  std::span<const uint32_t> of(size_t thing) const {
    return std::span(before_).subspan(first_[thing],
                                      first_[thing + 1] - first_[thing]);
  }
  // For each thing, those that it comes before.
  Precedence reversed() const;

 private:
  std::vector<size_t> first_;  // in before_, and where the last list ends
  std::vector<uint32_t> before_;
};

// The order of things of which no graph is made yet; `name` is for the
// message. REQUIRES: fewer than 2^32.
Result<std::vector<uint32_t>> topological_order(
    const Precedence& before,
    const std::function<std::string_view(size_t)>& name);

}  // namespace tagflow::graph
