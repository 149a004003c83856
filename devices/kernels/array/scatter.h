// Rows addressed by index vectors: shared by GatherNd, ScatterNd, TensorScatter
// and the scatters into variables.
#pragma once

#include <string_view>

#include "devices/kernel_inputs.h"

namespace tagflow::devices {

// How an update changes an element.
enum class Combine : uint8_t {
  kAssign,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,  // integers towards zero; the caller checks for zero
  kMin,
  kMax,
};
// The suffix of an op's name: "Add", "Sub", ...; else kAssign.
Combine combine_of(std::string_view op);

// How an index out of range is handled: kError rejects it, kIgnore skips it.
enum class BadIndices : uint8_t { kError, kIgnore };

// From the attribute "bad_indices_policy", if the node has it. InvalidArgument
// for an unknown value.
Result<BadIndices> bad_indices_policy(const KernelInfo& info);

// Integer indices as an int64 tensor; the same tensor if it is one already.
Result<Tensor> as_int64(KernelContext& context, const Tensor& indices);

// Each vector along the last dimension of `indices` selects a slice of a tensor
// of `shape`. Returns the slices' numbers as a vector of int64, -1 for one that
// is ignored. InvalidArgument if `indices` is a scalar, a vector is longer
// than the shape has dimensions, or an index is out of range.
Result<Tensor> slice_numbers(KernelContext& context, const Tensor& indices,
                             const Shape& shape, BadIndices policy);

// InvalidArgument unless updates have the shape that `indices` into a tensor of
// `shape` require: indices.shape[:-1] + shape[indices.shape[-1]:]. As in
// TensorFlow, scalar indices or updates are rejected, and of the three either
// none is empty, or both indices and updates are.
Status check_updates(const KernelContext& context, const Tensor& indices,
                     const Tensor& updates, const Shape& shape);

// Combines slice i of `updates` into slice numbers[i] of `target`, in order:
// the last of several assignments to one slice wins. Unimplemented for a type
// that cannot be combined so. REQUIRES: the functions above have passed;
// `target` is not shared.
Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      const Tensor& updates, Combine combine, Tensor& target);
// As above, for slices of `size` elements, where `updates` may be a scalar that
// is used for all.
Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      int64_t size, const Tensor& updates, Combine combine,
                      Tensor& target);

}  // namespace tagflow::devices
