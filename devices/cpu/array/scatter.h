// Rows addressed by index vectors: shared by GatherNd, ScatterNd, TensorScatter
// and the scatters into variables.
#pragma once

#include <string_view>

#include "devices/cpu/array/args.h"

namespace tagflow::devices {

// What an update does to the element that is there.
enum class Combine : uint8_t {
  kAssign,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,  // of integers towards zero; by zero it is for the caller to refuse
  kMin,
  kMax,
};
// That which an op's name ends with: "Add", "Sub", ...; else kAssign.
Combine combine_of(std::string_view op);

// What becomes of an index outside: kError refuses it, kIgnore skips it.
enum class BadIndices : uint8_t { kError, kIgnore };

// From the attribute "bad_indices_policy", where the node has one.
// InvalidArgument for an unknown word.
Result<BadIndices> bad_indices_policy(const KernelInfo& info);

// Integer indices as a tensor of type int64; the same tensor where it is one.
Result<Tensor> as_int64(KernelContext& context, const Tensor& indices);

// Each vector along the last dimension of `indices` names a slice of a tensor
// of `shape`. Returns the slices' numbers as a vector of int64, -1 for one
// that is ignored. InvalidArgument where indices are a scalar, longer than the
// shape has dimensions, or outside of it.
Result<Tensor> slice_numbers(KernelContext& context, const Tensor& indices,
                             const Shape& shape, BadIndices policy);

// InvalidArgument unless updates have the shape that `indices` into a tensor
// of `shape` ask for: indices.shape[:-1] + shape[indices.shape[-1]:]. As in
// TensorFlow, indices or updates of no dimension are refused, and of the three
// either none is empty, or both indices and updates are.
Status check_updates(const KernelContext& context, const Tensor& indices,
                     const Tensor& updates, const Shape& shape);

// Combines slice i of `updates` into slice numbers[i] of `target`, in order,
// so that of assignments to one slice the last one stays. Unimplemented for a
// type that cannot be combined so. REQUIRES: what the functions above check;
// `target` is not shared.
Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      const Tensor& updates, Combine combine, Tensor& target);
// The same for slices of `size` elements, where `updates` may be a scalar: one
// element for all.
Status scatter_slices(const KernelContext& context, const Tensor& numbers,
                      int64_t size, const Tensor& updates, Combine combine,
                      Tensor& target);

}  // namespace tagflow::devices
