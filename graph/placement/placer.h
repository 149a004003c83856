// Placement: chooses a device for each node by a simulation.
//
// Note [The simulation]
// Nodes are placed in the order in which they could start, after all of their
// inputs. Each goes to the feasible device on which it would finish first: its
// inputs have to arrive there, a kernel's slot has to be free, and then it
// takes its own time (Note [Costs]) and that of all others of its group. The
// first placed node of a group determines the device of the group.
//
// Cheap nodes (control flow, identities, integer and boolean scalars) go where
// their data is, regardless of the finish time. If all of their data is
// unplaced, as constants are, they are unplaced too, until the first reader
// with a cost determines their device.
//
// The model is coarse:
//   - a device runs `kernels_at_once` kernels, in the order of the walk;
//   - a tensor goes to another device once, whoever reads it there; a link to
//     the host carries one tensor at a time in each direction, and so does the
//     network of a task, whichever other tasks they go to or come from;
//   - all iterations of a loop run as one, multiplied by the measured trip
//     count, or by CostModel::kAssumedTrips if there is none; the factors of
//     nested loops are multiplied, but of at most three;
//   - both sides of a conditional are computed;
//   - a function that runs in frames of its own has the cost of its nodes,
//     once;
//   - memory holds an output, and each copy, from the start of its node until
//     its last reader is placed, and fetches until the end. If no device has
//     room, the one with the most room is used, with a warning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/placement/cost_model.h"
#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

struct PlacementOptions {
  // Constraints that cannot be met are relaxed, with a warning.
  bool soft = false;
  // Simulate even if there is only one device.
  bool always_simulate = false;
};

enum class PlacementReason : uint8_t {
  kOnlyDevice,     // there is no other
  kConstraint,     // its own constraint leaves no choice
  kOnlyKernel,     // its kernels leave no choice
  kColocated,      // its group was placed with another node
  kData,           // it follows an input or control input
  kReader,         // it follows its first reader
  kAnywhere,       // it costs nothing, and neither do its inputs
  kOnlyRoom,       // no other device has room for it
  kMostRoom,       // no device has room for it, this one has the most
  kFinishesFirst,  // it would finish there first
};

// The reason for a node's device.
struct NodeReason {
  PlacementReason reason = PlacementReason::kOnlyDevice;
  NodeId other = 0;            // of kColocated, kData and kReader
  uint32_t rival = 0;          // for kFinishesFirst: the next best device
  double finish_ns = 0;        // when it would finish on the chosen device
  double rival_finish_ns = 0;  // when it would finish on the rival
};

// Times are nanoseconds from the start of the step.
struct SimulatedRun {
  NodeId node = 0;
  uint32_t device = 0;
  double start_ns = 0;
  double finish_ns = 0;
};

struct SimulatedTransfer {
  NodeId node = 0;  // the node with this output
  int port = 0;     // -1: a control edge
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
  double start_ns = 0;
  double finish_ns = 0;
};

struct PlacementResult {
  Placement placement;
  // By node id; empty if there was no choice.
  std::vector<NodeReason> reasons;
  std::vector<SimulatedRun> runs;  // in the order of the walk
  std::vector<SimulatedTransfer> transfers;
  double makespan_ns = 0;  // when the last node ends
  std::vector<std::string> warnings;

  // "finishes first: 12.3 us, on CPU:1 14.0 us". REQUIRES: the graph and the
  // devices are those of the placement.
  std::string explain(const Graph& graph, std::span<const DeviceInfo> devices,
                      const Node& node) const;
};

// Places every node of the program; bodies are on the devices of their calls.
// Does nothing if there is a single device, the host can access its memory, and
// no node requests another. Errors and requirements are those of
// Colocation::build().
Result<PlacementResult> place(const Program& program,
                              std::span<const DeviceInfo> devices,
                              const KernelCatalog& catalog,
                              const CostModel& costs,
                              const PlacementOptions& options = {});

// Simulates a placement that was made elsewhere; the result has no reasons.
// REQUIRES: the program is valid, and every node is on one of the devices.
Result<PlacementResult> simulate(const Program& program,
                                 std::span<const DeviceInfo> devices,
                                 const CostModel& costs,
                                 const Placement& placement);

}  // namespace tagflow::graph
