// A report of a placement: what runs where, why, and, in the simulation, when.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/plan/distribute.h"
#include "apps/shared/draw/schedule.h"

namespace tagflow::apps {

// Times are microseconds from the start of the step.
struct PlacedNode {
  std::string name;
  std::string op;
  std::string frame;  // the loop that it runs in; "" for none
  std::string reason;
  size_t device = 0;  // in the report's devices
  double start_us = 0;
  double finish_us = 0;
};

struct PlacedTransfer {
  std::string tensor;  // "name:0", or "^name" for a control edge
  size_t from = 0;     // devices
  size_t to = 0;
  size_t source = 0;  // nodes; the reader is the first to start
  size_t reader = 0;
  double bytes = 0;
  double start_us = 0;
  double finish_us = 0;
};

struct PlacedDevice {
  std::string name;        // full
  std::string short_name;  // "CPU:0"
  int kernels_at_once = 1;
  size_t nodes = 0;
  double busy_us = 0;  // of all of its kernels
  double share = 0;    // of its capacity until the makespan; 0 to 1
};

// Measured runs of the placed graph, without an observer.
struct MeasuredRuns {
  int runs = 0;
  double median_us = 0;
};

struct PlacementReport {
  std::vector<PlacedDevice> devices;      // all
  std::vector<PlacedNode> nodes;          // in the order of the simulation
  std::vector<PlacedTransfer> transfers;  // the same
  double makespan_us = 0;
  double transferred_bytes = 0;
  std::vector<std::string> notes;  // the basis of these numbers
  std::vector<std::string> warnings;
  std::optional<MeasuredRuns> measured;
};

// Returns InvalidArgument if loops are malformed. REQUIRES: the distribution
// was explained, for these devices.
Result<PlacementReport> report_placement(
    const actors::Distribution& distribution,
    std::span<const graph::DeviceInfo> devices);

// Lines of text: devices, then each node with its reason.
std::string format_placement(const PlacementReport& report);
// One JSON object, with everything.
std::string format_placement_json(const PlacementReport& report);
// The simulated run: a track for each device, and each link that is used.
draw::Schedule make_schedule(const PlacementReport& report);

}  // namespace tagflow::apps
