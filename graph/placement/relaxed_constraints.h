// Constraints that give way under soft placement, and the warnings of them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Nodes must outlive it. Thread-compatible.
class RelaxedConstraints {
 public:
  // What becomes of the node.
  enum class Outcome : uint8_t { kWithOthers, kOnCpu, kWhereItCan };

  // The constraint of the node counts no longer. `reason` goes on from `node
  // "x" asks for "y"`. The first one that is given for a node stays, unless it
  // gives way once more, to others.
  void add(const Node& node, std::string_view reason, Outcome outcome);
  bool empty() const { return group_of_.empty(); }
  bool contains(const Node& node) const { return group_of_.contains(&node); }
  // REQUIRES: contains(node).
  Outcome outcome(const Node& node) const {
    return groups_[group_of_.at(&node)].outcome;
  }
  // One for all nodes that asked for the same and gave way for the same reason,
  // in the order of the first of each.
  std::vector<std::string> warnings() const;

 private:
  struct Group {
    std::string reason;
    Outcome outcome = Outcome::kWithOthers;
    std::vector<const Node*> nodes;
  };
  std::unordered_map<const Node*, size_t> group_of_;
  std::unordered_map<std::string, size_t> index_;  // of groups_
  std::vector<Group> groups_;
};

}  // namespace tagflow::graph
