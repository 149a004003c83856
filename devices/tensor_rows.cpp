// Containers hold single tensors, while the ops around them use one tensor for
// all: conversions between rows and tensors.
#include "devices/tensor_rows.h"

#include <algorithm>

#include "devices/copy.h"
#include "devices/element_mover.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Fewer bytes of rows in total are moved by one worker.
constexpr double kBytesWorthSharding = 1 << 16;
// A row of one element is in memory of its own.
constexpr double kScalarRowNanoseconds = 5;

// Whether rows of one element are moved by the loops below.
bool moves_scalars(const KernelContext& context, int64_t run) {
  return run == 1 && mover_of(context) == nullptr;
}

// The shape of one row.
Shape row_shape_of(const Tensor& tensor) {
  Shape shape = tensor.shape();
  shape.remove_dim(0);
  return shape;
}

// Calls body(begin, end) on parts of `rows` rows of `bytes` each.
void for_rows(const KernelContext& context, int64_t rows, double bytes,
              RangeBody body) {
  if (double(rows) * bytes < kBytesWorthSharding) {
    body(0, rows);
  } else {
    context.parallel_for(rows, 2 + 0.1 * bytes, body);
  }
}

template <class T>
T wrapped_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return T(Unsigned(Unsigned(a) + Unsigned(b)));
  } else {
    return a + b;
  }
}

}  // namespace

Result<Tensor> make_zeros(const KernelContext& context, DataType dtype,
                          const Shape& shape) {
  TAGFLOW_ASSIGN(const Shape checked, Shape::make(shape.dims()));
  TAGFLOW_ASSIGN(Tensor zeros,
                 Tensor::allocate(dtype, checked, context.allocator()));
  zero_elements(context, zeros);
  return zeros;
}

Result<Tensor> stack_rows(const KernelContext& context, DataType dtype,
                          std::span<const Tensor> rows,
                          const Shape& row_shape) {
  Shape shape = row_shape;
  shape.insert_dim(0, int64_t(rows.size()));
  TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
  TAGFLOW_ASSIGN(Tensor stacked,
                 Tensor::allocate(dtype, shape, context.allocator()));
  const int64_t run = row_shape.num_elements();
  if (run == 0 || rows.empty()) return stacked;
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (rows[size_t(i)].valid())
        copy_elements(context, rows[size_t(i)], 0, stacked, i * run, run);
  };
  const bool complete = std::ranges::all_of(rows, &Tensor::valid);
  if (!complete) zero_elements(context, stacked);
  const auto copy_scalars = [&]<class T>(TypeTag<T>) {
    T* const to = static_cast<T*>(stacked.mutable_raw());
    context.for_blocks(int64_t(rows.size()), kScalarRowNanoseconds,
                       [&](int64_t begin, int64_t end) {
                         for (auto i = size_t(begin); i < size_t(end); ++i)
                           if (rows[i].valid())
                             to[i] = *static_cast<const T*>(rows[i].raw());
                       });
  };
  if (!moves_scalars(context, run) || !visit_size(dtype, copy_scalars))
    for_rows(context, int64_t(rows.size()),
             double(run) * double(dtype_size(dtype)), copy);
  return stacked;
}

Status join_rows(KernelContext& context, std::span<const Tensor> parts,
                 std::span<const int64_t> lengths, const Shape& rest,
                 int output) {
  int64_t rows = 0;
  for (const int64_t length : lengths)
    if (__builtin_add_overflow(rows, length, &rows))
      return context.fail("the sum of the lengths overflows");
  Shape shape = rest;
  shape.insert_dim(0, rows);
  TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
  TAGFLOW_ASSIGN(Tensor * joined, context.allocate_output(output, shape));
  const bool complete = std::ranges::all_of(parts, &Tensor::valid);
  if (!complete) zero_elements(context, *joined);
  const int64_t run = rest.num_elements();
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    context.check_cancelled();
    const int64_t count = lengths[i] * run;
    if (parts[i].valid())
      copy_elements(context, parts[i], 0, *joined, at, count);
    at += count;
  }
  return {};
}

Status unstack_rows(const KernelContext& context, const Tensor& tensor,
                    std::vector<Tensor>& rows) {
  const Shape row_shape = row_shape_of(tensor);
  const int64_t count = tensor.dim(0);
  const int64_t run = row_shape.num_elements();
  const size_t first = rows.size();
  rows.reserve(first + size_t(count));
  if (run == 0 && count > 0) {
    // Without elements they need no memory.
    TAGFLOW_ASSIGN(const Tensor row, Tensor::allocate(tensor.dtype(), row_shape,
                                                      context.allocator()));
    rows.resize(first + size_t(count), row);
    return {};
  }
  for (int64_t i = 0; i < count; ++i) {
    context.check_cancelled();
    TAGFLOW_ASSIGN(Tensor row, Tensor::allocate(tensor.dtype(), row_shape,
                                                context.allocator()));
    rows.push_back(std::move(row));
  }
  const auto copy_scalars = [&]<class T>(TypeTag<T>) {
    const T* from = static_cast<const T*>(tensor.raw());
    context.for_blocks(
        count, kScalarRowNanoseconds, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            *static_cast<T*>(rows[first + size_t(i)].mutable_raw()) = from[i];
        });
  };
  if (moves_scalars(context, run) && visit_size(tensor.dtype(), copy_scalars))
    return {};
  for_rows(context, count, double(run) * double(dtype_size(tensor.dtype())),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i)
               copy_elements(context, tensor, i * run, rows[first + size_t(i)],
                             0, run);
           });
  return {};
}

Result<Tensor> copy_rows(const KernelContext& context, const Tensor& tensor,
                         int64_t begin, int64_t count) {
  Shape shape = tensor.shape();
  shape.set_dim(0, count);
  TAGFLOW_ASSIGN(Tensor rows,
                 Tensor::allocate(tensor.dtype(), shape, context.allocator()));
  const int64_t elements = shape.num_elements();
  if (elements > 0)
    copy_elements(context, tensor, begin * (elements / count), rows, 0,
                  elements);
  return rows;
}

Result<Tensor> add_tensors(const KernelContext& context, Tensor a,
                           const Tensor& b, bool may_overwrite) {
  Tensor sum;
  ElementMover* const mover = is_plain(b.dtype()) ? mover_of(context) : nullptr;
  if (may_overwrite && a.unique() && can_change(context, a)) {
    sum = std::move(a);
  } else {
    TAGFLOW_ASSIGN(sum,
                   Tensor::allocate(a.dtype(), a.shape(), context.allocator()));
  }
  const Tensor& left = sum.valid() && a.valid() ? a : sum;
  if (mover != nullptr) {
    TAGFLOW_RETURN_IF_ERROR(mover->add(context, left, b, false, sum));
    return sum;
  }
  const bool added = visit_numeric(b.dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = left.data<T>();
    const T* y = b.data<T>();
    T* z = sum.mutable_data<T>();
    context.parallel_for(b.num_elements(), 0.3,
                         [x, y, z](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             z[i] = wrapped_sum(x[i], y[i]);
                         });
  });
  if (added) return sum;
  return context.fail("values of type {} cannot be added",
                      dtype_name(b.dtype()));
}

}  // namespace tagflow::devices
