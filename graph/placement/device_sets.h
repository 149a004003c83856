// Sets of devices, stored once each: a large graph has few different ones.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace tagflow::graph {

// Sets of device numbers, and their intersections. Movable. Thread-compatible.
class DeviceSets {
 public:
  // Equal sets have equal numbers.
  using Id = uint32_t;
  static constexpr Id kAll = 0;

  explicit DeviceSets(size_t devices);
  DeviceSets(DeviceSets&&) = default;
  DeviceSets& operator=(DeviceSets&&) = default;

  // REQUIRES: ascending, and each is below the number of devices.
  Id add(std::vector<uint32_t> devices);
  Id intersection(Id a, Id b);
  bool is_empty(Id set) const { return of(set).empty(); }
  // Ascending. Valid as long as this object.
  std::span<const uint32_t> of(Id set) const { return *sets_[set]; }

 private:
  std::map<std::vector<uint32_t>, Id> ids_;
  std::vector<const std::vector<uint32_t>*> sets_;  // keys of ids_
  std::unordered_map<uint64_t, Id> intersections_;
};

}  // namespace tagflow::graph
