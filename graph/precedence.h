// Orders of things of which some precede others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::graph {

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

// Every thing comes after those that precede it; otherwise in order of number.
// InvalidArgument with the names, which `name` gives, if there is a cycle,
// which can only be one of nodes. REQUIRES: fewer than 2^32 things.
Result<std::vector<uint32_t>> topological_order(
    const Precedence& before,
    const std::function<std::string_view(size_t)>& name);

}  // namespace tagflow::graph
