// The columns of its inputs that a _FusedElementwise uses.
#pragma once

#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

// The whole input if `count` is 0.
struct FusedColumns {
  int64_t first = 0, count = 0;
};

// The attribute `columns`: by input, or empty. InvalidArgument if it has
// another number of elements, or an element is invalid.
Result<std::vector<FusedColumns>> read_fused_columns(const KernelInfo& info);

// InvalidArgument if an input has fewer columns. REQUIRES: `columns` is
// empty, or has an element for each input.
Status check_fused_columns(const KernelContext& context,
                           const std::vector<FusedColumns>& columns);

// An input restricted to its columns. Lives no longer than its arguments.
class SeenInput {
 public:
  SeenInput(const Tensor& input, const FusedColumns& columns)
      : input_(input), columns_(columns) {}

  int rank() const { return input_.rank(); }
  // REQUIRES: 0 <= i < rank()
  int64_t dim(int i) const {
    return columns_.count != 0 && i == rank() - 1 ? columns_.count
                                                  : input_.dim(i);
  }
  int64_t num_elements() const;
  Shape shape() const;
  bool has_dims_of(const SeenInput& other) const;

 private:
  const Tensor& input_;
  const FusedColumns& columns_;
};

// A new tensor of these columns. ResourceExhausted if there is no memory.
// REQUIRES: `whole` has them, and `count` is at least 1.
Result<Tensor> copy_columns(const KernelContext& context, const Tensor& whole,
                            const FusedColumns& columns);

}  // namespace tagflow::devices
