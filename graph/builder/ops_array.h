// Op functions: shapes, slices, joins, and other ops that move elements.
#pragma once

#include <algorithm>

#include "graph/builder/ops_control_flow.h"

namespace tagflow::graph::ops {

struct OutType {
  DataType out_type = DataType::kInt32;
};
inline Output shape(const Scope& s, const Input& x, OutType a = {}) {
  return s.op("Shape", {x}, {{"out_type", a.out_type}});
}
inline Outputs shape_n(const Scope& s, const Inputs& inputs, OutType a = {}) {
  return all_outputs(s.op("ShapeN", inputs, {{"out_type", a.out_type}}));
}
inline Output size(const Scope& s, const Input& x, OutType a = {}) {
  return s.op("Size", {x}, {{"out_type", a.out_type}});
}
inline Output rank(const Scope& s, const Input& x) { return s.op("Rank", {x}); }

inline Output reshape(const Scope& s, const Input& x, const Input& shape) {
  return s.op("Reshape", {x, shape});
}
inline Output expand_dims(const Scope& s, const Input& x, const Input& axis) {
  return s.op("ExpandDims", {x, axis});
}
// Drops dimensions of size 1: all, or those of `axes`.
inline Output squeeze(const Scope& s, const Input& x,
                      std::vector<int64_t> axes = {}) {
  return s.op("Squeeze", {x}, {{"squeeze_dims", std::move(axes)}});
}
inline Output fill(const Scope& s, const Input& dims, const Input& value) {
  return s.op("Fill", {dims, value});
}
inline Output zeros_like(const Scope& s, const Input& x) {
  return s.op("ZerosLike", {x});
}
inline Output ones_like(const Scope& s, const Input& x) {
  return s.op("OnesLike", {x});
}
inline Output range(const Scope& s, const Input& start, const Input& limit,
                    const Input& delta) {
  return s.op("Range", {start, limit, delta});
}
inline Output tile(const Scope& s, const Input& x, const Input& multiples) {
  return s.op("Tile", {x, multiples});
}
inline Output pack(const Scope& s, const Inputs& values, int axis = 0) {
  return s.op("Pack", values, {{"axis", axis}});
}
inline Outputs unpack(const Scope& s, const Input& value, int num,
                      int axis = 0) {
  return all_outputs(s.op("Unpack", {value}, {{"num", num}, {"axis", axis}}));
}
inline Output concat(const Scope& s, const Inputs& values, const Input& axis) {
  return s.op("ConcatV2", Inputs(values).add(axis),
              {{"N", int64_t(values.size())}});
}
inline Outputs concat_offset(const Scope& s, const Input& axis,
                             const Inputs& shapes) {
  return all_outputs(s.op("ConcatOffset", Inputs{axis}.add(shapes)));
}
inline Outputs split(const Scope& s, const Input& axis, const Input& value,
                     int num_split) {
  return all_outputs(s.op("Split", {axis, value}, {{"num_split", num_split}}));
}

inline Output slice(const Scope& s, const Input& x, const Input& begin,
                    const Input& size) {
  return s.op("Slice", {x, begin, size});
}
struct StridedSliceMasks {
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0,
          shrink_axis_mask = 0;
};
inline AttrMap to_attrs(const StridedSliceMasks& m) {
  return {{"begin_mask", m.begin_mask},
          {"end_mask", m.end_mask},
          {"ellipsis_mask", m.ellipsis_mask},
          {"new_axis_mask", m.new_axis_mask},
          {"shrink_axis_mask", m.shrink_axis_mask}};
}
inline Output strided_slice(const Scope& s, const Input& x, const Input& begin,
                            const Input& end, const Input& strides,
                            const StridedSliceMasks& masks = {}) {
  return s.op("StridedSlice", {x, begin, end, strides}, to_attrs(masks));
}
inline Output strided_slice_grad(const Scope& s, const Input& shape,
                                 const Input& begin, const Input& end,
                                 const Input& strides, const Input& dy,
                                 const StridedSliceMasks& masks = {}) {
  return s.op("StridedSliceGrad", {shape, begin, end, strides, dy},
              to_attrs(masks));
}

inline Output gather(const Scope& s, const Input& params, const Input& indices,
                     const Input& axis = 0, int batch_dims = 0) {
  return s.op("GatherV2", {params, indices, axis},
              {{"batch_dims", batch_dims}});
}
inline Output gather_nd(const Scope& s, const Input& params,
                        const Input& indices) {
  return s.op("GatherNd", {params, indices});
}
inline Output scatter_nd(const Scope& s, const Input& indices,
                         const Input& updates, const Input& shape) {
  return s.op("ScatterNd", {indices, updates, shape});
}
inline Output dynamic_stitch(const Scope& s, const Inputs& indices,
                             const Inputs& data) {
  return s.op("DynamicStitch", Inputs(indices).add(data),
              {{"N", int64_t(indices.size())}});
}
inline Outputs dynamic_partition(const Scope& s, const Input& data,
                                 const Input& partitions, int num) {
  return all_outputs(
      s.op("DynamicPartition", {data, partitions}, {{"num_partitions", num}}));
}

inline Output transpose(const Scope& s, const Input& x, const Input& perm) {
  return s.op("Transpose", {x, perm});
}
inline Output invert_permutation(const Scope& s, const Input& x) {
  return s.op("InvertPermutation", {x});
}
inline Output reverse(const Scope& s, const Input& x, const Input& axes) {
  return s.op("ReverseV2", {x, axes});
}
inline Output pad(const Scope& s, const Input& x, const Input& paddings) {
  return s.op("Pad", {x, paddings});
}
inline Output one_hot(const Scope& s, const Input& indices, const Input& depth,
                      const Input& on, const Input& off, int axis = -1) {
  return s.op("OneHot", {indices, depth, on, off}, {{"axis", axis}});
}
inline Output where(const Scope& s, const Input& condition) {
  return s.op("Where", {condition});
}
}  // namespace tagflow::graph::ops
