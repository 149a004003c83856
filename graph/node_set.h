// NodeSet: some nodes of a graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/node.h"
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
  bool insert(const Node& node) {
    uint64_t& word = words_[node.id() / kBits];
    const uint64_t bit = uint64_t(1) << (node.id() % kBits);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kBits = 64;

  PagedTable<uint64_t> words_;  // bits, by node id
  size_t size_ = 0;
};

}  // namespace tagflow::graph
