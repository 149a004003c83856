#include "devices/kernels/elementwise/fused_columns.h"

#include <cstring>
#include <limits>

namespace tagflow::devices {

Result<std::vector<FusedColumns>> read_fused_columns(const KernelInfo& info) {
  TAGFLOW_ASSIGN(const auto numbers,
                 info.attr<std::vector<int64_t>>("columns"));
  if (!numbers.empty() && numbers.size() != 2 * size_t(info.num_inputs()))
    return invalid_argument("there are {} numbers for the columns of {} inputs",
                            numbers.size(), info.num_inputs());
  std::vector<FusedColumns> columns;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    const FusedColumns one = {numbers[i], numbers[i + 1]};
    if (one.first < 0 || one.count < 0 ||
        one.count > std::numeric_limits<int64_t>::max() - one.first)
      return invalid_argument("input {} has no {} columns from column {} on",
                              i / 2, one.count, one.first);
    columns.push_back(one);
  }
  return columns;
}

Status check_fused_columns(const KernelContext& context,
                           const std::vector<FusedColumns>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto& [first, count] = columns[i];
    const Tensor& input = context.input(int(i));
    if (count != 0 &&
        (input.rank() == 0 || input.dim(input.rank() - 1) < first + count))
      return context.fail("input {} has no columns {} to {}: it is {}", i,
                          first, first + count - 1, input.describe());
  }
  return {};
}

int64_t SeenInput::num_elements() const {
  if (columns_.count == 0) return input_.num_elements();
  // Unsigned: for an empty input, a partial product may overflow.
  uint64_t elements = 1;
  for (int i = 0; i < rank(); ++i) elements *= uint64_t(dim(i));
  return int64_t(elements);
}

Shape SeenInput::shape() const {
  Shape shape = input_.shape();
  if (columns_.count != 0) shape.set_dim(rank() - 1, columns_.count);
  return shape;
}

bool SeenInput::has_dims_of(const SeenInput& other) const {
  if (rank() != other.rank()) return false;
  for (int i = 0; i < rank(); ++i)
    if (dim(i) != other.dim(i)) return false;
  return true;
}

Result<Tensor> copy_columns(const KernelContext& context, const Tensor& whole,
                            const FusedColumns& columns) {
  const Shape shape = SeenInput(whole, columns).shape();
  TAGFLOW_ASSIGN(Tensor copy,
                 Tensor::allocate(whole.dtype(), shape, context.allocator()));
  const size_t element = dtype_size(whole.dtype());
  const size_t bytes = size_t(columns.count) * element;
  const size_t stride = size_t(whole.dim(whole.rank() - 1)) * element;
  const auto* from = static_cast<const std::byte*>(whole.raw()) +
                     size_t(columns.first) * element;
  auto* to = static_cast<std::byte*>(copy.mutable_raw());
  for (int64_t rows = shape.num_elements() / columns.count; rows > 0; --rows) {
    std::memcpy(to, from, bytes);
    to += bytes;
    from += stride;
  }
  return copy;
}

}  // namespace tagflow::devices
