// What the nodes of one program cost on each of some devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/placement/cost_model.h"
#include "graph/program.h"

namespace tagflow::graph {

// The arguments of the constructor must outlive it. Thread-compatible.
class ProgramCosts {
 public:
  // InvalidArgument where frames are malformed.
  static Result<ProgramCosts> build(const Program& program,
                                    std::span<const DeviceInfo> devices,
                                    const CostModel& model);

  const NodeWork& work(const Node& node) const { return works_[node.id()]; }
  // How often the node runs, by what was seen or is assumed of loops.
  double repeats(const Node& node) const { return repeats_[node.id()]; }
  // Is to be where its data is: it is free, gives integer or boolean scalars,
  // or holds values, which stay where they were made.
  bool is_light(const Node& node) const { return light_[node.id()]; }
  // Adds the time of all of its runs, by device. A call takes what the nodes
  // of its function do once, those that they call apart.
  void add_times(const Node& node, std::span<double> nanoseconds) const;

 private:
  ProgramCosts(std::span<const DeviceInfo> devices, const CostModel& model)
      : devices_(devices), model_(model) {}

  std::span<const DeviceInfo> devices_;
  const CostModel& model_;
  std::vector<NodeWork> works_;                 // by node id
  std::vector<double> repeats_;                 // by node id
  std::vector<bool> light_;                     // by node id
  std::vector<std::vector<double>> of_bodies_;  // by device
};

}  // namespace tagflow::graph
