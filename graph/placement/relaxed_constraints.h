// Constraints that soft placement relaxes, and their warnings.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// Nodes must outlive it. Thread-compatible.
class RelaxedConstraints {
 public:
  // How the node is placed instead.
  enum class Outcome : uint8_t { kWithOthers, kOnCpu, kWhereItCan };

  // Relaxes the node's constraint. `reason` continues `node "x" asks for "y"`.
  // The first reason for a node is kept, unless the constraint is relaxed
  // again, in favour of other nodes.
  void add(const Node& node, std::string_view reason, Outcome outcome);
  bool empty() const { return group_of_.empty(); }
  bool contains(const Node& node) const { return group_of_.contains(&node); }
  // REQUIRES: contains(node).
  Outcome outcome(const Node& node) const {
    return groups_[group_of_.at(&node)].outcome;
  }
  // One warning for all nodes with the same constraint and reason, in the order
  // of the first node of each.
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
