// Estimated costs of nodes on a device, and of transfers between devices.
//
// Note [Costs]
// A kernel takes the device's launch time plus the longer of its arithmetic and
// its memory traffic, at the device's rates. Both are estimated from shapes,
// with a rule for each kind of Work in op definitions: products, convolutions,
// windows, reductions, element-wise ops, data movement. Nodes that only forward
// tokens (control flow, identities, constants) are free. An unknown dimension
// counts as kAssumedDimension, and an unknown rank as kAssumedElements
// elements.
//
// If a node has been measured on a device type, the measurement replaces the
// estimate; for other types the estimate is corrected by the same factor.
// Measured sizes of outputs and trip counts of loops are used as well.
//
// A tensor that goes to another process takes the latency of the link between
// the two tasks, and its bytes at the link's rate: as measured, or as assumed
// of a network between processes of one machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/status.h"

namespace tagflow::graph {

// The cost of one execution of a node, independent of the device.
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
  // Maximum of a measurement: years, or petabytes.
  static constexpr double kMostMeasured = 1e18;
  // Minimum of a rate per nanosecond: at a lower one, times have no end.
  static constexpr double kLeastRate = 1e-6;
  // The trip count of a loop that has not been measured.
  static constexpr double kAssumedTrips = 10;
  // The time to pass a token between partitions, without a copy.
  static constexpr double kHandOverNs = 1'000;
  // The weight of older measurements decreases.
  static constexpr int kMeasurements = 16;

  // Mean of measurements; empty if the count is 0. Counts are capped at
  // kMeasurements.
  struct Mean {
    double value = 0;
    int count = 0;

    void add(double sample);
    // Adds the samples of another mean, which are newer.
    void add(const Mean& newer);
    bool operator==(const Mean&) const = default;
  };
  // The measurements of the node with a name.
  struct NodeCosts {
    std::string node;
    Mean output_bytes;
    std::vector<std::pair<std::string, Mean>> nanoseconds;  // by device type

    bool operator==(const NodeCosts&) const = default;
  };
  // The measured trip count of the loop with a frame name.
  struct LoopCosts {
    std::string frame;
    Mean trips;

    bool operator==(const LoopCosts&) const = default;
  };
  // A connection between two tasks, in one direction.
  struct Link {
    double latency_ns = 20'000;
    double bytes_per_ns = 3;

    bool operator==(const Link&) const = default;
  };
  // As in the names of devices: "/job:worker/replica:0/task:1".
  struct LinkCosts {
    std::string from;
    std::string to;
    Link link;

    bool operator==(const LinkCosts&) const = default;
  };

  // The estimate from shapes alone.
  static NodeWork estimate(const Node& node);
  // The size of one output, as far as its shape is known.
  static double output_bytes(const Node& node, int port);
  // Between two devices that share the host's memory, only the hand-over and
  // the latencies of the devices. Otherwise through the host, with a copy for
  // each device whose memory the host cannot access, and over the link of
  // their tasks if these differ. REQUIRES: the devices differ.
  double transfer_ns(const DeviceInfo& from, const DeviceInfo& to,
                     double bytes) const;

  // Adds a measurement of one run of the node with that name, on a device of
  // the type. Negative and non-finite numbers are ignored.
  void measure(std::string_view node, std::string_view device_type,
               double nanoseconds, double output_bytes);
  // Adds the trip count of the loop with that frame name, per iteration of the
  // surrounding loop or per run. Negative and non-finite numbers are ignored.
  void measure_trips(std::string_view frame, double trips);

  // Adds the measurements of another model, which are newer.
  void add(const CostModel& newer);

  // All measurements, sorted by name, for use in another session.
  std::vector<NodeCosts> node_costs() const;
  std::vector<LoopCosts> loop_costs() const;
  std::vector<LinkCosts> link_costs() const;
  // Restores saved measurements of a node or loop and replaces existing ones.
  // InvalidArgument unless every mean is a number from 0 to kMostMeasured, of 0
  // to kMeasurements measurements; then nothing is changed.
  Status set(NodeCosts costs);
  Status set(LoopCosts costs);
  // Sets the link from one task to another. InvalidArgument unless both are
  // names of tasks, which differ, the latency is a number from 0 to
  // kMostMeasured, and the rate is one from kLeastRate to kMostMeasured; then
  // nothing is changed.
  Status set(LinkCosts costs);

  // The estimate, with the measured size of outputs.
  NodeWork work(const Node& node) const;
  // The trip count of the loop; none if it was not measured.
  std::optional<double> trips(std::string_view frame) const;
  // The node's time on each of the devices.
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
  // Null if there are no measurements.
  const Measured* find(const Node& node) const;
  using Tasks = std::pair<DeviceName, DeviceName>;
  // Compares the tasks of two pairs of devices.
  struct TaskOrder {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return parts(a) < parts(b);
    }
    static auto parts(const auto& pair) {
      const auto& [from, to] = pair;
      return std::tie(from.task, to.task, from.replica, to.replica, from.job,
                      to.job);
    }
  };
  const Link& link(const DeviceName& from, const DeviceName& to) const;
  static Mean& time_on(Measured& measured, std::string_view device_type);

  std::unordered_map<std::string, Measured, NameHash, std::equal_to<>>
      measured_;  // by node
  std::unordered_map<std::string, Mean, NameHash, std::equal_to<>>
      trips_;  // by frame
  std::map<Tasks, Link, TaskOrder> links_;
};

}  // namespace tagflow::graph
