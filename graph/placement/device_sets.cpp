#include "graph/placement/device_sets.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace tagflow::graph {

DeviceSets::DeviceSets(size_t devices) {
  std::vector<uint32_t> all(devices);
  std::iota(all.begin(), all.end(), uint32_t(0));
  add(std::move(all));
}

DeviceSets::Id DeviceSets::add(std::vector<uint32_t> devices) {
  const auto [it, is_new] =
      ids_.try_emplace(std::move(devices), Id(sets_.size()));
  if (is_new) sets_.push_back(&it->first);
  return it->second;
}

DeviceSets::Id DeviceSets::intersection(Id a, Id b) {
  if (a == b || b == kAll) return a;
  if (a == kAll) return b;
  const uint64_t key = uint64_t(std::min(a, b)) << 32 | std::max(a, b);
  if (const auto it = intersections_.find(key); it != intersections_.end())
    return it->second;
  std::vector<uint32_t> common;
  std::ranges::set_intersection(of(a), of(b), std::back_inserter(common));
  const Id id = add(std::move(common));
  intersections_.emplace(key, id);
  return id;
}

}  // namespace tagflow::graph
