// Sends that nobody receives any more.
#pragma once

#include <vector>

#include "graph/partition/partition.h"

namespace tagflow::graph {

// A pass over a partition may remove the last reader of what another device
// sends, and with it the Recv. Removes each Send whose Recv is in no partition,
// and the nodes that only such Sends need. So each transfer has both ends,
// which may be in different processes. Stateful nodes that only they need go,
// too, as they do in a program that is not cut; and so does a partition without
// nodes. REQUIRES: the partitions are those of one program, without order
// edges.
void drop_unreceived(std::vector<Partition>& partitions);

}  // namespace tagflow::graph
