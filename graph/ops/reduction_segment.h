// Definitions of the segment ops, a part of register_reduction_ops().
#pragma once

namespace tagflow::graph {

class OpRegistry;

// Segment*, UnsortedSegment* and SparseSegment*.
void register_segment_ops(OpRegistry& registry);

}  // namespace tagflow::graph
