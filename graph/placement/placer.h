// Placement: which node runs on which device, by a simulation.
//
// Note [The simulation]
// Nodes are taken in the order in which they could start, all inputs having
// been placed. Each goes to the feasible device where it would finish first:
// when its inputs have arrived there, a kernel's place is free, and its own
// time (Note [Costs]) and that of all others of its group has passed. Once one
// of a group is placed, the group is.
//
// What costs little - control flow, identities, integer and boolean scalars -
// goes where its data is, whenever it finishes. If all of its data is of no
// certain place, as constants are, then it is of none itself, until the first
// reader that costs something takes it along.
//
// The model is a coarse one:
//   - a device runs `kernels_at_once` kernels, in the order of the walk;
//   - a tensor goes to another device once, whoever reads it there; a link to
//     the host carries one tensor at a time in each direction;
//   - all of a loop's iterations run as one, so many times as long as the loop
//     was seen to go around; of what was not seen, CostModel::kAssumedTrips
//     times, in loops inside loops again, but not in more than three;
//   - both sides of a conditional are computed;
//   - a function that runs in frames of its own takes what its nodes do, once;
//   - memory holds an output, and each copy, from the start of its node until
//     its last reader is taken, and what is fetched for good. Where no device
//     has room, the one with the most room is taken, with a warning.
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
  // Constraints that cannot be met give way, with a warning.
  bool soft = false;
  // Simulate even where there is one device, and no choice.
  bool always_simulate = false;
};

enum class PlacementReason : uint8_t {
  kOnlyDevice,     // there is no other
  kConstraint,     // its own constraint leaves no choice
  kOnlyKernel,     // its kernels leave no choice
  kColocated,      // its group was placed with another node
  kData,           // where the node is that it reads, or waits for
  kReader,         // where the node is that first read it
  kAnywhere,       // it costs nothing, and so does what it reads
  kOnlyRoom,       // no other device has room for it
  kMostRoom,       // no device has room for it, this one has the most
  kFinishesFirst,  // of all devices it would be done here first
};

// Why a node is where it is.
struct NodeReason {
  PlacementReason reason = PlacementReason::kOnlyDevice;
  NodeId other = 0;            // of kColocated, kData and kReader
  uint32_t rival = 0;          // of kFinishesFirst: the next best device
  double finish_ns = 0;        // and when it would be done here,
  double rival_finish_ns = 0;  // and there
};

// Times are nanoseconds from the start of the step.
struct SimulatedRun {
  NodeId node = 0;
  uint32_t device = 0;
  double start_ns = 0;
  double finish_ns = 0;
};

struct SimulatedTransfer {
  NodeId node = 0;  // whose output it is
  int port = 0;     // -1: a control edge
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
  double start_ns = 0;
  double finish_ns = 0;
};

struct PlacementResult {
  Placement placement;
  // By node id; empty where there was nothing to choose.
  std::vector<NodeReason> reasons;
  std::vector<SimulatedRun> runs;  // in the order of the walk
  std::vector<SimulatedTransfer> transfers;
  double makespan_ns = 0;  // when the last is done
  std::vector<std::string> warnings;

  // "finishes first: 12.3 us, on CPU:1 14.0 us"; REQUIRES: the graph and the
  // devices are those that were placed.
  std::string explain(const Graph& graph, std::span<const DeviceInfo> devices,
                      const Node& node) const;
};

// Places every node of the program; its bodies are where their calls are. With
// one device whose memory the host reads, and no node that asks for another,
// there is nothing to do. Errors as Colocation::build() gives them; the same
// requirements.
Result<PlacementResult> place(const Program& program,
                              std::span<const DeviceInfo> devices,
                              const KernelCatalog& catalog,
                              const CostModel& costs,
                              const PlacementOptions& options = {});

// What is predicted of a placement made elsewhere, without reasons.
// REQUIRES: the program is valid, and every node is on one of the devices.
Result<PlacementResult> simulate(const Program& program,
                                 std::span<const DeviceInfo> devices,
                                 const CostModel& costs,
                                 const Placement& placement);

}  // namespace tagflow::graph
