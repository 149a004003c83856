// Union-find: disjoint sets that are merged.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace tagflow::graph {

// Sets of the numbers below `size`, initially one each. Thread-compatible.
class UnionFind {
 public:
  explicit UnionFind(size_t size) : parent_(size), size_(size, 1) {
    std::iota(parent_.begin(), parent_.end(), uint32_t(0));
  }

  // The representative of the set of `i`.
  uint32_t find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The size of the set whose representative is `i`.
  uint32_t size_of(uint32_t i) const { return size_[i]; }
  // Merges the sets of `a` and `b`; returns the new representative.
  uint32_t unite(uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return a;
    if (size_[a] < size_[b]) std::swap(a, b);
    parent_[b] = a;
    size_[a] += size_[b];
    return a;
  }

 private:
  std::vector<uint32_t> parent_;
  std::vector<uint32_t> size_;
};

}  // namespace tagflow::graph
