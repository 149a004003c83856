#include "net/serving/batch_rows.h"

#include <algorithm>
#include <cstring>

#include "graph/handle.h"

namespace tagflow::net::serving {
namespace {

// Copies `count` elements, whose bytes are no value for some types.
Status copy_elements(const Tensor& from, int64_t begin, int64_t count,
                     Tensor& to, int64_t at) {
  if (is_plain(from.dtype())) {
    const size_t size = dtype_size(from.dtype());
    if (count > 0)
      std::memcpy(static_cast<char*>(to.mutable_raw()) + size_t(at) * size,
                  static_cast<const char*>(from.raw()) + size_t(begin) * size,
                  size_t(count) * size);
    return {};
  }
  const auto copy = [&]<class T>(const T* source, T* target) {
    std::copy_n(source + begin, count, target + at);
    return Status();
  };
  switch (from.dtype()) {
    case DataType::kString:
      return copy(from.data<std::string>(), to.mutable_data<std::string>());
    case DataType::kVariant:
      return copy(from.data<Variant>(), to.mutable_data<Variant>());
    default:
      return error(Code::kUnimplemented,
                   "[batch] rows of {} cannot be joined or cut",
                   dtype_name(from.dtype()));
  }
}

Result<Tensor> like(const Tensor& tensor, int64_t rows) {
  Shape shape = tensor.shape();
  shape.set_dim(0, rows);
  TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
  return Tensor::allocate(tensor.dtype(), shape);
}

int64_t row_size(const Tensor& tensor) {
  return tensor.dim(0) == 0 ? 0 : tensor.num_elements() / tensor.dim(0);
}

}  // namespace

Result<int64_t> count_rows(const Tensors& tensors) {
  int64_t rows = 0;
  const std::string* first = nullptr;
  for (const auto& [name, value] : tensors) {
    if (value.rank() == 0)
      return invalid_argument(
          "[batch] input \"{}\" is a scalar, and has no rows to batch", name);
    if (first != nullptr && value.dim(0) != rows)
      return invalid_argument(
          "[batch] input \"{}\" has {} rows, but \"{}\" has {}", *first, rows,
          name, value.dim(0));
    first = &name;
    rows = value.dim(0);
  }
  if (rows == 0) return invalid_argument("[batch] the request has no rows");
  return rows;
}

std::string row_types(const Tensors& tensors) {
  std::string text;
  for (const auto& [name, value] : tensors) {
    text += fmt::format("{}:{}", name, int(value.dtype()));
    for (int i = 1; i < value.rank(); ++i)
      text += fmt::format(",{}", value.dim(i));
    text += ';';
  }
  return text;
}

Result<Tensors> join_rows(std::span<const Tensors* const> parts, int64_t rows) {
  if (parts.size() == 1 && parts[0]->begin()->second.dim(0) == rows)
    return *parts[0];
  Tensors joined;
  for (const auto& [name, first] : *parts[0]) {
    TAGFLOW_ASSIGN(Tensor whole, like(first, rows));
    const int64_t size = row_size(whole);
    int64_t at = 0;
    const Tensor* last = &first;
    for (const Tensors* part : parts) {
      last = &part->at(name);
      const int64_t count = last->dim(0);
      TAGFLOW_RETURN_IF_ERROR(
          copy_elements(*last, 0, count * size, whole, at * size));
      at += count;
    }
    for (; at < rows; ++at)
      TAGFLOW_RETURN_IF_ERROR(copy_elements(*last, (last->dim(0) - 1) * size,
                                            size, whole, at * size));
    joined.emplace(name, std::move(whole));
  }
  return joined;
}

Result<Tensors> cut_rows(const Tensors& tensors, int64_t all, int64_t begin,
                         int64_t count) {
  Tensors cut;
  for (const auto& [name, whole] : tensors) {
    if (whole.rank() == 0 || whole.dim(0) != all)
      return invalid_argument(
          "[batch] output \"{}\" is {}, and has not a row for each of the {} "
          "rows of the batch",
          name, whole.describe(), all);
    if (count == all) {
      cut.emplace(name, whole);
      continue;
    }
    TAGFLOW_ASSIGN(Tensor part, like(whole, count));
    const int64_t size = row_size(whole);
    TAGFLOW_RETURN_IF_ERROR(
        copy_elements(whole, begin * size, count * size, part, 0));
    cut.emplace(name, std::move(part));
  }
  return cut;
}

}  // namespace tagflow::net::serving
