#include "devices/kernels/segment/ids.h"

#include "graph/dtype_visit.h"

namespace tagflow::devices {

Result<Tensor> as_int64(const KernelContext& context, const Tensor& tensor) {
  if (tensor.dtype() == DataType::kInt64) return tensor;
  TAGFLOW_ASSIGN(Tensor wide, Tensor::allocate(DataType::kInt64, tensor.shape(),
                                               context.allocator()));
  detail::visit_among<int16_t, int32_t>(
      tensor.dtype(), [&]<class T>(TypeTag<T>) {
        const T* const from = tensor.data<T>();
        auto* const to = wide.mutable_data<int64_t>();
        context.for_blocks(tensor.num_elements(), 1,
                           [&](int64_t begin, int64_t end) {
                             std::copy(from + begin, from + end, to + begin);
                           });
      });
  return wide;
}

Result<int64_t> row_count(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (!tensor.is_scalar())
    return context.fail("the number of rows is {}, not a scalar",
                        tensor.describe());
  TAGFLOW_ASSIGN(const Tensor wide, as_int64(context, tensor));
  const int64_t rows = wide.scalar_value<int64_t>();
  if (rows < 0) return context.fail("the number of rows is {}, below 0", rows);
  return rows;
}

Status check_sorted_ids(const KernelContext& context, const Tensor& ids,
                        int64_t rows) {
  if (ids.rank() != 1)
    return context.fail("segment_ids are {}, not a vector", ids.describe());
  if (ids.dim(0) != rows)
    return context.fail("there are {} segment_ids for {} rows", ids.dim(0),
                        rows);
  const int64_t* id = ids.data<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    context.check_cancelled();
    if (id[i] < 0)
      return context.fail("segment_ids[{}] = {} is negative", i, id[i]);
    if (i > 0 && id[i] < id[i - 1])
      return context.fail("segment_ids[{}] = {} is below the {} before it", i,
                          id[i], id[i - 1]);
  }
  return Status();
}

Result<Shape> rows_shape(int64_t rows, const Tensor& data, int from) {
  Shape::Dims dims;
  dims.push_back(rows);
  for (int i = from; i < data.rank(); ++i) dims.push_back(data.dim(i));
  return Shape::make({dims.data(), dims.size()});
}

int64_t row_size(const Tensor& data, int from) {
  uint64_t size = 1;
  for (int i = from; i < data.rank(); ++i) size *= uint64_t(data.dim(i));
  return int64_t(size);
}

}  // namespace tagflow::devices
