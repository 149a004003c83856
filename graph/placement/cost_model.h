// What nodes are thought to cost on a device, and transfers between two.
//
// Note [Costs]
// A kernel takes the device's launch time, and then as long as the slower of
// its arithmetic and its memory traffic does, at the device's figures. Both are
// estimated from shapes, by a rule for each kind of Work, which the op's
// definition names: products, convolutions, windows, reductions, element-wise
// ops, movement of data. What only hands a token on - control flow, identities,
// constants - is free. Of a shape of which something is unknown, a dimension
// counts as kAssumedDimension, and an unknown rank as kAssumedElements
// elements.
//
// Where a node has been measured on a type of device, that counts instead; on
// other types the estimate is corrected by the same factor. So does the
// measured size of its outputs, and how often a loop was seen to go around.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/status.h"

namespace tagflow::graph {

// What it takes to run a node once, on any device.
struct NodeWork {
  double flops = 0;
  double bytes = 0;         // read and written
  double output_bytes = 0;  // of all outputs
  bool is_free = false;     // nothing is launched

  bool operator==(const NodeWork&) const = default;
};

// Estimates, and measurements of earlier runs. Thread-compatible.
class CostModel {
 public:
  static constexpr int64_t kAssumedDimension = 32;
  static constexpr int64_t kAssumedElements = 1024;
  // What a measurement may be at most: years, or petabytes.
  static constexpr double kMostMeasured = 1e18;
  // Of a loop that has not been seen.
  static constexpr double kAssumedTrips = 10;
  // Of a token from one device's partition to another's, without a copy.
  static constexpr double kHandOverNs = 1'000;
  // Older measurements than so many count less and less.
  static constexpr int kMeasurements = 16;

  // Of measurements; none where the count is 0. More than kMeasurements count
  // as so many.
  struct Mean {
    double value = 0;
    int count = 0;

    void add(double sample);
    bool operator==(const Mean&) const = default;
  };
  // What was measured of the node of a name.
  struct NodeCosts {
    std::string node;
    Mean output_bytes;
    std::vector<std::pair<std::string, Mean>> nanoseconds;  // by device type

    bool operator==(const NodeCosts&) const = default;
  };
  // How often the loop of a frame name went around.
  struct LoopCosts {
    std::string frame;
    Mean trips;

    bool operator==(const LoopCosts&) const = default;
  };

  // From shapes alone.
  static NodeWork estimate(const Node& node);
  // Of one output, as far as its shape says.
  static double output_bytes(const Node& node, int port);
  // Between two devices that share the host's memory, no more than the
  // hand-over and what the devices say of their latency. Else through the
  // host, a copy for each end whose memory the host does not read.
  // REQUIRES: they are not the same.
  static double transfer_ns(const DeviceInfo& from, const DeviceInfo& to,
                            double bytes);

  // Of one run of the node of that name, on a device of the type. What is
  // no number from 0 on does not count.
  void measure(std::string_view node, std::string_view device_type,
               double nanoseconds, double output_bytes);
  // How often the loop of that frame name goes around each time that the loop
  // around it does, or in a run. What is no number from 0 on does not count.
  void measure_trips(std::string_view frame, double trips);

  // All that was measured, in the order of names: to be kept for another
  // session.
  std::vector<NodeCosts> node_costs() const;
  std::vector<LoopCosts> loop_costs() const;
  // What was kept, in place of what is known of that node or loop.
  // InvalidArgument unless every mean is a number from 0 to kMostMeasured and
  // of 0 to kMeasurements measurements; then nothing has changed.
  Status set(NodeCosts costs);
  Status set(LoopCosts costs);

  // With the size of outputs that was measured.
  NodeWork work(const Node& node) const;
  // How often the loop goes around; none where it was not measured.
  std::optional<double> trips(std::string_view frame) const;
  // For each of the devices, as long as the node takes there.
  void find_times(const Node& node, const NodeWork& work,
                  std::span<const DeviceInfo> devices,
                  std::span<double> nanoseconds) const;

 private:
  struct Measured {
    Mean output_bytes;
    std::vector<std::pair<std::string, Mean>> nanoseconds;  // by device type
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  // Null where there is nothing.
  const Measured* find(const Node& node) const;

  std::unordered_map<std::string, Measured, NameHash, std::equal_to<>>
      measured_;  // by node
  std::unordered_map<std::string, Mean, NameHash, std::equal_to<>>
      trips_;  // by frame
};

}  // namespace tagflow::graph
