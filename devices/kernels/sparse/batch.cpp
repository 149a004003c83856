#include "devices/kernels/sparse/batch.h"

#include <algorithm>

#include "devices/copy.h"

namespace tagflow::devices {
namespace {

// Row `row` of a sparse tensor: its elements are order[begin, end).
Result<SparseItem> row_of(KernelContext& context, const SparseIndices& sparse,
                          std::span<const int64_t> order, const Tensor& shape) {
  const Tensor& values = context.input(1);
  const auto count = int64_t(order.size());
  SparseItem item;
  item.shape = shape;
  TAGFLOW_ASSIGN(item.indices,
                 context.allocate_temp(DataType::kInt64,
                                       Shape{count, sparse.shape.rank() - 1}));
  TAGFLOW_ASSIGN(item.values,
                 context.allocate_temp(values.dtype(), Shape{count}));
  auto* to = item.indices.mutable_data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    to = std::ranges::copy(sparse.at(order[size_t(i)]).subspan(1), to).out;
    copy_elements(values, order[size_t(i)], item.values, i, 1);
  }
  return item;
}

Status check_item(const KernelContext& context, const SparseItem& item,
                  size_t at, DataType dtype) {
  if (item.indices.dtype() != DataType::kInt64 || item.indices.rank() != 2)
    return context.fail(
        "the indices of SparseTensor[{}] are {}, not a matrix "
        "of int64",
        at, item.indices.describe());
  if (item.values.rank() != 1)
    return context.fail("the values of SparseTensor[{}] are {}, not a vector",
                        at, item.values.describe());
  if (item.shape.dtype() != DataType::kInt64 || item.shape.rank() != 1)
    return context.fail(
        "the shape of SparseTensor[{}] is {}, not a vector of "
        "int64",
        at, item.shape.describe());
  if (item.values.dtype() != dtype)
    return context.fail("SparseTensor[{}] has values of {}, not of {}", at,
                        dtype_name(item.values.dtype()), dtype_name(dtype));
  if (item.indices.dim(0) != item.values.dim(0))
    return context.fail("SparseTensor[{}] has {} indices for {} values", at,
                        item.indices.dim(0), item.values.dim(0));
  if (item.indices.dim(1) != item.shape.dim(0))
    return context.fail(
        "SparseTensor[{}] has indices of {} columns, but its shape is of rank "
        "{}",
        at, item.indices.dim(1), item.shape.dim(0));
  return Shape::make(item.shape.flat<int64_t>()).status();
}

// The largest of each dimension, after those that count the items.
Result<std::vector<int64_t>> shape_of_batch(const KernelContext& context,
                                            std::span<const SparseItem> items,
                                            const Shape& leading) {
  const int64_t counting = leading.rank();
  std::vector<int64_t> dims(leading.dims().begin(), leading.dims().end());
  dims.resize(size_t(counting + items[0].shape.num_elements()));
  for (size_t i = 0; i < items.size(); ++i) {
    const auto own = items[i].shape.flat<int64_t>();
    const int64_t rank = counting + int64_t(own.size());
    const auto before = int64_t(dims.size());
    if (rank != before)
      return context.fail(
          "SparseTensors of a batch must have one rank, but SparseTensor[{}] "
          "is of rank {}, {} in the batch, and those before it of {}, {}",
          i, own.size(), rank, before - counting, before);
    for (size_t d = 0; d < own.size(); ++d) {
      int64_t& dim = dims[size_t(counting) + d];
      dim = std::max(dim, own[d]);
    }
  }
  return dims;
}

}  // namespace

Status check_sparse_ports(const KernelContext& context) {
  if (context.input(0).rank() != 2)
    return context.fail("indices must be a matrix, got {}",
                        context.input(0).describe());
  for (const int i : {1, 2})
    if (context.input(i).rank() != 1)
      return context.fail("{} must be a vector, got {}",
                          i == 1 ? "values" : "the shape",
                          context.input(i).describe());
  return {};
}

Result<std::vector<SparseItem>> sparse_rows(KernelContext& context) {
  TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
  if (sparse.shape.rank() < 2)
    return context.fail(
        "a sparse tensor of rank {} has no rows: 2 is the "
        "least",
        sparse.shape.rank());
  TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
  const int64_t rows = sparse.shape.dim(0);
  if (rows > kMostItems)
    return error(Code::kResourceExhausted,
                 "[{}] the sparse tensor has {} rows, {} is the limit",
                 context.node().op(), rows, kMostItems);
  TAGFLOW_ASSIGN(
      Tensor shape,
      context.allocate_temp(DataType::kInt64, Shape{sparse.shape.rank() - 1}));
  std::ranges::copy(sparse.shape.dims().subspan(1),
                    shape.mutable_data<int64_t>());
  // By rows; the elements of a row keep their order.
  std::vector<int64_t> order(size_t(sparse.count));
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  const auto row = [&](int64_t i) { return sparse.at(i)[0]; };
  if (!std::ranges::is_sorted(order, {}, row))
    std::ranges::stable_sort(order, {}, row);
  TAGFLOW_ASSIGN(const SparseItem empty, row_of(context, sparse, {}, shape));
  std::vector<SparseItem> items(size_t(rows), empty);
  for (auto begin = order.begin(); begin != order.end();) {
    const int64_t at = row(*begin);
    const auto end = std::find_if(begin, order.end(),
                                  [&](int64_t i) { return row(i) != at; });
    TAGFLOW_ASSIGN(items[size_t(at)],
                   row_of(context, sparse, {begin, end}, shape));
    begin = end;
  }
  return items;
}

Status set_batch(KernelContext& context, std::span<const SparseItem> items,
                 const Shape& leading, DataType dtype) {
  if (items.empty())
    return context.fail("a batch must have at least 1 SparseTensor");
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(check_item(context, items[i], i, dtype));
    count += items[i].indices.dim(0);
  }
  TAGFLOW_ASSIGN(const std::vector<int64_t> dims,
                 shape_of_batch(context, items, leading));
  TAGFLOW_ASSIGN(Tensor * indices, context.allocate_output(
                                       0, Shape{count, int64_t(dims.size())}));
  TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, Shape{count}));
  TAGFLOW_ASSIGN(Tensor * shape,
                 context.allocate_output(2, Shape{int64_t(dims.size())}));
  std::ranges::copy(dims, shape->mutable_data<int64_t>());
  std::vector<int64_t> number(size_t(leading.rank()), 0);
  auto* to = indices->mutable_data<int64_t>();
  int64_t filled = 0;
  for (const SparseItem& item : items) {
    const int64_t own = item.indices.dim(0), rank = item.indices.dim(1);
    const int64_t* from = item.indices.data<int64_t>();
    for (int64_t i = 0; i < own; ++i, from += rank) {
      context.check_cancelled();
      to = std::ranges::copy(number, to).out;
      to = std::copy_n(from, rank, to);
    }
    copy_elements(item.values, 0, *values, filled, own);
    filled += own;
    for (int d = leading.rank() - 1; d >= 0; --d) {
      if (++number[size_t(d)] < leading.dim(d)) break;
      number[size_t(d)] = 0;
    }
  }
  return {};
}

}  // namespace tagflow::devices
