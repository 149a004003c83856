#include "devices/kernels/sparse/args.h"

#include <algorithm>
#include <numeric>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

Status element_error(const KernelContext& context, const SparseIndices& sparse,
                     int64_t i, std::string_view what) {
  return context.fail("indices[{}] = {} {} in a sparse tensor of shape {}", i,
                      coordinates_text(sparse.at(i)), what,
                      sparse.shape.to_string());
}

bool is_inside(const SparseIndices& sparse, int64_t i) {
  const auto at = sparse.at(i);
  for (int d = 0; d < sparse.shape.rank(); ++d)
    if (at[size_t(d)] < 0 || at[size_t(d)] >= sparse.shape.dim(d)) return false;
  return true;
}

}  // namespace

Result<SparseIndices> sparse_input(const KernelContext& context,
                                   SparsePorts ports) {
  const Tensor& indices = context.input(ports.indices);
  const Tensor& values = context.input(ports.values);
  if (indices.rank() != 2)
    return context.fail("input {}, indices, must be a matrix, got {}",
                        ports.indices, indices.describe());
  if (values.rank() != 1)
    return context.fail("input {}, values, must be a vector, got {}",
                        ports.values, values.describe());
  if (indices.dim(0) != values.dim(0))
    return context.fail("there are {} indices for {} values", indices.dim(0),
                        values.dim(0));
  Shape::Dims dims;
  TAGFLOW_RETURN_IF_ERROR(
      index_vector(context, ports.shape, "the shape", dims));
  if (int64_t(dims.size()) != indices.dim(1))
    return context.fail("indices of {} columns do not fit a shape of rank {}",
                        indices.dim(1), dims.size());
  SparseIndices sparse;
  sparse.coordinates = indices.data<int64_t>();
  sparse.count = indices.dim(0);
  TAGFLOW_ASSIGN(sparse.shape, Shape::make({dims.data(), dims.size()}));
  return sparse;
}

Status check_inside(const KernelContext& context, const SparseIndices& sparse) {
  for (int64_t i = 0; i < sparse.count; ++i) {
    context.check_cancelled();
    if (!is_inside(sparse, i))
      return element_error(context, sparse, i, "is out of range");
  }
  return {};
}

Status check_inside_and_sorted(const KernelContext& context,
                               const SparseIndices& sparse) {
  TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
  for (int64_t i = 1; i < sparse.count; ++i) {
    context.check_cancelled();
    if (is_before(sparse.at(i - 1), sparse.at(i))) continue;
    return element_error(context, sparse, i,
                         is_before(sparse.at(i), sparse.at(i - 1))
                             ? "is out of order"
                             : "is repeated");
  }
  return {};
}

bool is_before(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::lexicographical_compare(a, b);
}

std::vector<int64_t> sorted_order(const KernelContext& context,
                                  const SparseIndices& sparse) {
  std::vector<int64_t> order(size_t(sparse.count));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) {
    context.check_cancelled();
    return is_before(sparse.at(a), sparse.at(b));
  };
  if (!std::ranges::is_sorted(order, before))
    std::ranges::stable_sort(order, before);
  return order;
}

std::string coordinates_text(std::span<const int64_t> at) {
  return fmt::format("[{}]", fmt::join(at, ","));
}

int64_t offset_of(std::span<const int64_t> at, const Shape::Dims& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

Status set_shape_output(KernelContext& context, int output,
                        const Shape& shape) {
  TAGFLOW_ASSIGN(Tensor * dims,
                 context.allocate_output(output, Shape{shape.rank()}));
  std::ranges::copy(shape.dims(), dims->mutable_data<int64_t>());
  return {};
}

}  // namespace tagflow::devices
