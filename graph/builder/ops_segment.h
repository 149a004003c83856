// Op functions: sums of rows by the numbers of their segments.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

inline Output segment_sum(const Scope& s, const Input& data,
                          const Input& segment_ids) {
  return s.op("SegmentSum", {data, segment_ids});
}
inline Output unsorted_segment_sum(const Scope& s, const Input& data,
                                   const Input& segment_ids,
                                   const Input& num_segments) {
  return s.op("UnsortedSegmentSum", {data, segment_ids, num_segments});
}

}  // namespace tagflow::graph::ops
