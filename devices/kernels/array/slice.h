// The elements that strided slices select, of tensors and of variables.
#pragma once

#include <span>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "graph/ops/array_slice.h"

namespace tagflow::devices {

using graph::SliceGeometry;
using graph::SliceMasks;

// The node's attributes "begin_mask" and so on.
SliceMasks read_slice_masks(const KernelInfo& info);

// The selection from a shape by inputs [first, first + 3): begin, end and
// strides. InvalidArgument if it is out of range.
Result<SliceGeometry> read_slice(const KernelContext& context, int first,
                                 const SliceMasks& masks, const Shape& shape);

// The dimensions of the output. Valid as long as the geometry.
std::span<const int64_t> slice_dims(const SliceGeometry& geometry);

// Broadcasts a value to the slice's shape. InvalidArgument if it does not
// fit.
Result<Tensor> repeat_to_slice(const KernelContext& context,
                               const Tensor& value,
                               const SliceGeometry& geometry);

// The copy from the selected elements to consecutive ones.
// REQUIRES: no count is 0.
StridedCopy slice_selection(const SliceGeometry& geometry, const Shape& shape);

}  // namespace tagflow::devices
