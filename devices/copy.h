// Copies elements of any type between strided views of tensors: the common part
// of slicing, transposing, tiling, padding, joining and splitting.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "devices/kernel.h"
#include "graph/dtype_visit.h"
#include "graph/handle.h"

namespace tagflow::devices {

// Calls f(TypeTag<T>{}) with a T that is copied like the elements of `t`: an
// unsigned type of their size, std::string, ResourceHandle or Variant. False
// for an invalid type. For kernels that only move elements.
template <class F>
bool visit_movable(DataType t, F&& f) {
  return visit_size(t, f) ||
         tagflow::detail::visit_among<std::string, ResourceHandle, Variant>(t,
                                                                            f);
}

// The distance between neighbours of each dimension, for a row-major tensor of
// `dims`. Meaningless if a dimension is 0.
Shape::Dims row_major_strides(std::span<const int64_t> dims);

// The product of dims [begin, end). REQUIRES: it fits, as those of a tensor do.
int64_t product(std::span<const int64_t> dims, int begin, int end);

// One nested loop of a copy: it moves `count` times along both views, by their
// strides in elements. A stride may be 0 or negative.
struct CopyLoop {
  int64_t count = 1;
  int64_t from_stride = 0;
  int64_t to_stride = 0;
};

using CopyLoops = boost::container::small_vector<CopyLoop, 6>;

// A copy between two views: the loops, outermost first, and both starts.
struct StridedCopy {
  CopyLoops loops;
  int64_t from = 0;  // the first element read
  int64_t to = 0;    // the first element written

  void add(int64_t count, int64_t from_stride, int64_t to_stride) {
    loops.push_back({count, from_stride, to_stride});
  }
  // Swaps the source and the destination.
  void reverse();
};

// Carries out the copy, large ones on several workers. REQUIRES: both tensors
// have the same type; every element addressed exists; no element is written
// twice, or read after it was written.
void strided_copy(const KernelContext& context, StridedCopy copy,
                  const Tensor& from, Tensor& to);

// Copies `count` consecutive elements; the same requirements, and no overlap.
void copy_elements(const Tensor& from, int64_t from_at, Tensor& to,
                   int64_t to_at, int64_t count);
// As above, if the CPU may be unable to access the context's memory.
void copy_elements(const KernelContext& context, const Tensor& from,
                   int64_t from_at, Tensor& to, int64_t to_at, int64_t count);

// Input 0 as a writable output 0: the input itself if nobody else holds it,
// else a copy. ResourceExhausted if there is no memory for the copy.
// REQUIRES: the output is of the input's type.
Result<Tensor*> input_as_output(KernelContext& context);

// Sets every element to the first of `value`, of the same type.
void fill_elements(const KernelContext& context, const Tensor& value,
                   Tensor& to);

// Sets plain elements to zero bytes; others are left default-constructed.
// REQUIRES: `to` was just allocated.
void zero_elements(const KernelContext& context, Tensor& to);

}  // namespace tagflow::devices
