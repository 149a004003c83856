// Costs of the nodes of one program on some devices.
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
  // InvalidArgument if frames are malformed.
  static Result<ProgramCosts> build(const Program& program,
                                    std::span<const DeviceInfo> devices,
                                    const CostModel& model);

  const CostModel& model() const { return model_; }
  const NodeWork& work(const Node& node) const { return works_[node.id()]; }
  // How often the node runs, from measured or assumed trip counts.
  double repeats(const Node& node) const { return repeats_[node.id()]; }
  // Whether it goes where its data is: it is free, makes integer or boolean
  // scalars, or holds values, which stay where they were made.
  bool is_light(const Node& node) const { return light_[node.id()]; }
  // Adds the total time of all of its runs, by device. A call has the cost of
  // its function's nodes, once, without nested calls.
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
