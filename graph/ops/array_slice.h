// What StridedSlice and its relatives select: shared by shape inference and
// kernels.
#pragma once

#include "graph/shape.h"

namespace tagflow::graph {

// The five masks of StridedSlice; bit i is about entry i of the spec.
struct SliceMasks {
  int64_t begin = 0;        // starts where the dimension does
  int64_t end = 0;          // ends where the dimension does
  int64_t ellipsis = 0;     // stands for as many whole dimensions as fit
  int64_t new_axis = 0;     // adds a dimension of 1
  int64_t shrink_axis = 0;  // selects one index and drops the dimension
};

// The spec: begin, end and stride per entry. In shape inference begin or end
// may be unknown; they are empty then.
struct SliceSpec {
  Shape::Dims begin, end, strides;
  bool begin_known = true, end_known = true;
  SliceMasks masks;
};

// What is selected of a tensor. For each of its dimensions: the first index,
// the step, and how many (kUnknown if that cannot be known).
struct SliceGeometry {
  Shape::Dims begin, stride, count;
  // Of the output: some dimensions dropped, some new.
  Shape::Dims output;
};

// Reads the spec against an input of known rank whose dimensions may be
// kUnknown. InvalidArgument on a mask that is not an int32, two ellipses, too
// many entries, a stride of zero or an index outside; messages have no prefix.
Result<SliceGeometry> resolve_slice(const SliceSpec& spec,
                                    const PartialShape& input);

}  // namespace tagflow::graph
