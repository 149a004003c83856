// Recv scheduling: what is received late is asked for late.
//
// Note [Late Recvs]
// A Recv outside loops starts at once, and what it receives then sits in the
// memory of its device until somebody reads it. Where there is time, a control
// edge holds the Recv back until something else of its device is done.
//
//   ASAP   when a node can start, if nothing but its inputs holds it back
//   ALAP   when it has to start, lest the program take longer than it must
//
// Both count the costs of nodes along all edges of all partitions together, a
// Send coming before its Recv. An iteration must not take longer than it must
// either, and a predicate, for which others wait, is never held back. For a
// Recv, of all nodes on its device, in its
// frame and in every iteration, that have to be done when it has to start, the
// one that can be done last is waited for:
//
//   y1 -> y2 -> ... -> y9 -> sum        y8 -> ControlTrigger
//   x/recv -------------------^                   : (control edge)
//                                                 v
//                                               x/recv
//
// A dead control input would kill the Recv, so the edge goes through a
// ControlTrigger, which is live after dead nodes too.
//
// Why nobody waits for itself: the ALAP times are one schedule of the whole
// program, on all devices, and each edge in it, old or new, leads from what is
// done earlier to what starts later. An edge around a loop leads to a later
// iteration, and all in an iteration is ordered so. An Exit that is dead waits
// for its frame to end, so in the schedule every Exit comes after all that is
// in its frame, on whatever device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/partition/partition.h"

namespace tagflow::graph {

struct RecvScheduleOptions {
  // How long the node takes, a Recv's transfer included; less than 1 counts
  // as 1. Null: 1 for each node.
  std::function<int64_t(const Node&)> cost;
  // Starting less later than this, in units of the cost, is not worth it.
  int64_t min_delay = 4;
  // Nor is it for tensors that are known to have fewer bytes.
  int64_t min_bytes = 4096;
};

// Adds control edges that start Recvs late, and the ControlTriggers that they
// come from. A program whose frames depend on their own ends stays as it is.
// Returns how many Recvs were held back. REQUIRES: these are all partitions of
// one program, as partition() made them.
Result<size_t> schedule_recvs(std::vector<Partition>& partitions,
                              const RecvScheduleOptions& options = {});

}  // namespace tagflow::graph
