// TensorSlice: a box of a tensor; checkpoints store partitioned variables as
// such slices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/shape.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// The range of a slice in one dimension: `length` elements from `start` on, or
// all of them. Files distinguish "all" from an equal length.
struct Extent {
  static constexpr int64_t kAll = -1;
  int64_t start = 0;
  int64_t length = kAll;

  bool is_all() const { return length == kAll; }
  bool operator==(const Extent&) const = default;
};

// One extent for each dimension. A value.
class TensorSlice {
 public:
  TensorSlice() = default;
  explicit TensorSlice(std::vector<Extent> extents)
      : extents_(std::move(extents)) {}
  // "0,2:-": two rows and all columns. InvalidArgument for anything other than
  // "-" or a start >= 0 and a length > 0. Thread-safe.
  static Result<TensorSlice> parse(std::string_view text);

  int rank() const { return int(extents_.size()); }
  std::span<const Extent> extents() const { return extents_; }
  std::string to_string() const;
  // The slice's own shape, in a tensor of that shape. InvalidArgument if the
  // ranks differ or the slice is not within the tensor.
  Result<Shape> shape_in(const Shape& whole) const;
  // With a start and a length in every dimension. REQUIRES: shape_in() is not
  // an error.
  TensorSlice resolved(const Shape& whole) const;
  // The common part of two slices, which are resolved and of equal rank;
  // nothing if they have no element in common.
  std::optional<TensorSlice> intersection(const TensorSlice& other) const;
  bool operator==(const TensorSlice&) const = default;

 private:
  std::vector<Extent> extents_;
};

// Whether no two of the slices have an element in common: InvalidArgument names
// two that do. They are compared in the dimension that distinguishes most of
// them; ResourceExhausted if very many remain that are equal in most
// dimensions. REQUIRES: all are resolved and of one rank. Thread-safe.
Status check_disjoint(std::span<const TensorSlice> slices);

// All of a tensor of that shape, resolved.
TensorSlice whole_slice(const Shape& shape);

// The format of SaveV2 and RestoreV2: "4 6 0,2:-" is a slice of a tensor of
// shape [4,6].
struct ShapeAndSlice {
  Shape shape;
  TensorSlice slice;
  Shape slice_shape;
};
// InvalidArgument if the text is invalid, or the slice not in the shape.
// Thread-safe.
Result<ShapeAndSlice> parse_shape_and_slice(std::string_view text);

// The key of a slice of a tensor in an index; keys sort as the name and the
// numbers do. Thread-safe.
std::string slice_key(std::string_view name, const TensorSlice& slice);

// Elements that are contiguous both in a source and in a target; each of these
// holds a slice of one tensor, row-major.
struct SliceRun {
  int64_t from = 0, to = 0;  // positions, in elements
  int64_t count = 0;
};

// Copies the elements of `part` from one slice to another. Thread-safe.
class SliceCopy {
 public:
  // REQUIRES: all are resolved and of one rank; `from` and `to` contain `part`.
  SliceCopy(const TensorSlice& part, const TensorSlice& from,
            const TensorSlice& to);
  // The only run of the copy, if one is enough; it has no elements if `part`
  // has none.
  std::optional<SliceRun> single_run() const;
  void for_each_run(const std::function<void(const SliceRun&)>& visit) const;

 private:
  struct Dim {  // that are stepped through
    int64_t count = 0, from_stride = 0, to_stride = 0;
  };
  std::vector<Dim> outer_;
  SliceRun first_;
};

}  // namespace tagflow::checkpoint
