// Recv scheduling: values that are used late are received late.
//
// Note [Late Recvs]
// A Recv outside loops starts at once, and the received value occupies memory
// of its device until it is read. If there is slack, a control edge delays the
// Recv until another node of its device has finished.
//
//   ASAP   the earliest start of a node, if it waits only for its inputs
//   ALAP   the latest start that does not prolong the program
//
// Both add the costs of nodes along all edges of all partitions together; a
// Send precedes its Recv. An iteration must not take longer either, and a
// predicate, for which other devices wait, is never delayed. Candidates for a
// Recv are the nodes on its device and in its frame that run in every iteration
// and must have finished when it has to start. The Recv waits for the one that
// can finish last:
//
//   y1 -> y2 -> ... -> y9 -> sum        y8 -> ControlTrigger
//   x/recv -------------------^                   : (control edge)
//                                                 v
//                                               x/recv
//
// A dead control input would make the Recv dead, so the edge goes through a
// ControlTrigger, which is live even after dead nodes.
//
// Why there is no deadlock: the ALAP times are one schedule of the whole
// program, on all devices, and each edge, old or new, goes from a node that
// finishes earlier to one that starts later. A back edge leads to a later
// iteration; within an iteration all nodes are in this order. A dead Exit waits
// for its frame to end, so in the schedule every Exit comes after all nodes of
// its frame, on any device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/partition/partition.h"

namespace tagflow::graph {

struct RecvScheduleOptions {
  // The duration of the node, including a Recv's transfer; less than 1 counts
  // as 1. Null: 1 for each node.
  std::function<int64_t(const Node&)> cost;
  // Shorter delays are not worthwhile; in units of the cost.
  int64_t min_delay = 4;
  // Tensors that are known to have fewer bytes are not delayed.
  int64_t min_bytes = 4096;
};

// Adds control edges, and the ControlTriggers at their sources, that delay
// Recvs. A program whose frames depend on their own ends is unchanged. Returns
// the number of delayed Recvs. REQUIRES: these are all partitions of one
// program, as made by partition().
Result<size_t> schedule_recvs(std::vector<Partition>& partitions,
                              const RecvScheduleOptions& options = {});

}  // namespace tagflow::graph
