// NodeList: unique nodes, such as the control inputs of a new node.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <unordered_set>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// Unique nodes in the order in which they were added.
class NodeList {
 public:
  NodeList() = default;
  NodeList(std::initializer_list<Node*> nodes) {
    add({nodes.begin(), nodes.size()});
  }
  explicit NodeList(std::span<Node* const> nodes) { add(nodes); }

  void add(Node* node);
  void add(std::span<Node* const> nodes);
  size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }
  operator std::span<Node* const>() const { return nodes_; }

 private:
  std::vector<Node*> nodes_;
  std::unordered_set<const Node*> known_;  // for long lists only
};

// Replacing a Const with more control inputs costs more than it saves.
inline constexpr size_t kMaxControls = 16;
// Adds the control inputs that a reader of `source` needs if it no longer reads
// the value: for a constant, its control inputs, or the constant itself if it
// has more than kMaxControls of them. They keep the reader's order and
// deadness. False if no control edge can express the dependence.
bool add_dependence(NodeList& list, const Endpoint& source);

}  // namespace tagflow::graph
