// SparseFillEmptyRows and its gradient; SparseSoftmax.
#include <algorithm>
#include <cmath>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/sparse/args.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// Elements are ordered by their rows; an empty row gets one element of the
// default value, in its first column.
class FillEmptyRowsKernel : public SparseKernel {
 public:
  explicit FillEmptyRowsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    const Tensor& default_value = context.input(3);
    if (sparse.shape.rank() == 0)
      return context.fail("a sparse tensor of rank 0 has no rows");
    if (!default_value.is_scalar())
      return context.fail("default_value must be a scalar, got {}",
                          default_value.describe());
    const int64_t rows = sparse.shape.dim(0);
    TAGFLOW_ASSIGN(Tensor * empty, context.allocate_output(2, Shape{rows}));
    // The number of elements of a row; then the position of its next one.
    TAGFLOW_ASSIGN(Tensor next_of_rows,
                   context.allocate_temp(DataType::kInt64, Shape{rows}));
    auto* next = next_of_rows.mutable_data<int64_t>();
    context.for_blocks(rows, 0.5, [&](int64_t begin, int64_t end) {
      std::fill(next + begin, next + end, 0);
    });
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      const int64_t row = sparse.at(i)[0];
      if (row < 0 || row >= rows)
        return context.fail("indices[{}] = {} is in none of the {} rows", i,
                            coordinates_text(sparse.at(i)), rows);
      ++next[row];
    }
    int64_t filled = 0;
    for (int64_t row = 0; row < rows; ++row) {
      context.check_cancelled();
      empty->mutable_data<bool>()[row] = next[row] == 0;
      filled += std::max<int64_t>(std::exchange(next[row], filled), 1);
    }
    return fill(context, sparse, next, filled);
  }

 private:
  static Status fill(KernelContext& context, const SparseIndices& sparse,
                     int64_t* next, int64_t filled) {
    const int rank = sparse.shape.rank();
    const int64_t rows = sparse.shape.dim(0);
    const bool* empty = context.output(2).data<bool>();
    TAGFLOW_ASSIGN(Tensor * indices,
                   context.allocate_output(0, Shape{filled, rank}));
    TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, Shape{filled}));
    TAGFLOW_ASSIGN(Tensor * places,
                   context.allocate_output(3, Shape{sparse.count}));
    auto* to = indices->mutable_data<int64_t>();
    auto* place = places->mutable_data<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      context.check_cancelled();
      if (!empty[row]) continue;
      std::fill_n(to + next[row] * rank, rank, 0);
      to[next[row] * rank] = row;
    }
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      place[i] = next[sparse.at(i)[0]]++;
      std::ranges::copy(sparse.at(i), to + place[i] * rank);
    }
    visit_movable(values->dtype(), [&]<class T>(TypeTag<T>) {
      const T* from = static_cast<const T*>(context.input(1).raw());
      T* out = static_cast<T*>(values->mutable_raw());
      const T& missing = *static_cast<const T*>(context.input(3).raw());
      const ElementWriter<T> writer(*values);
      for (int64_t row = 0; row < rows; ++row) {
        context.check_cancelled();
        if (empty[row]) writer.assign(out[next[row]], missing);
      }
      for (int64_t i = 0; i < sparse.count; ++i) {
        context.check_cancelled();
        writer.assign(out[place[i]], from[i]);
      }
    });
    return {};
  }
};

template <class T>
class FillEmptyRowsGradKernel : public SparseKernel {
 public:
  explicit FillEmptyRowsGradKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& grad = context.input(1);
    Shape::Dims places;
    TAGFLOW_RETURN_IF_ERROR(
        index_vector(context, 0, "reverse_index_map", places));
    if (grad.rank() != 1)
      return context.fail("grad_values must be a vector, got {}",
                          grad.describe());
    TAGFLOW_ASSIGN(Tensor * of_values,
                   context.allocate_output(0, Shape{int64_t(places.size())}));
    TAGFLOW_ASSIGN(Tensor * of_default, context.allocate_output(1, Shape{}));
    std::vector<bool> is_value(size_t(grad.dim(0)), false);
    for (size_t i = 0; i < places.size(); ++i) {
      context.check_cancelled();
      if (places[i] < 0 || places[i] >= grad.dim(0))
        return context.fail("reverse_index_map[{}] = {} is outside of [0, {})",
                            i, places[i], grad.dim(0));
      is_value[size_t(places[i])] = true;
      of_values->mutable_data<T>()[i] = grad.data<T>()[places[i]];
    }
    auto sum = SumOp<T>::initial();
    for (size_t i = 0; i < is_value.size(); ++i) {
      context.check_cancelled();
      if (!is_value[i]) sum += SumOp<T>::load(grad.data<T>()[i]);
    }
    *of_default->mutable_data<T>() = SumOp<T>::finish(sum, 1);
    return {};
  }
};

// Softmax over the elements of each row of the last dimension; missing elements
// are ignored.
template <class T>
class SoftmaxSparseKernel : public SparseKernel {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

 public:
  explicit SoftmaxSparseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    if (sparse.shape.rank() < 2)
      return context.fail("the rank of shape {} is below 2",
                          sparse.shape.to_string());
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, Shape{sparse.count}));
    const auto order = sorted_order(context, sparse);
    const auto row_of = [&](int64_t i) {
      const auto at = sparse.at(i);
      return at.first(at.size() - 1);
    };
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() &&
             std::ranges::equal(row_of(order[end]), row_of(order[begin]))) {
        context.check_cancelled();
        ++end;
      }
      normalize(std::span(order).subspan(begin, end - begin),
                context.input(1).data<T>(), output->mutable_data<T>());
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 200 + 20 * double(context.input(1).num_elements());
  }

 private:
  static void normalize(std::span<const int64_t> row, const T* values, T* out) {
    Wide most = Wide(values[row[0]]), sum = 0;
    for (int64_t i : row) most = std::max(most, Wide(values[i]));
    for (int64_t i : row) sum += std::exp(Wide(values[i]) - most);
    for (int64_t i : row) out[i] = T(std::exp(Wide(values[i]) - most) / sum);
  }
};

}  // namespace

void register_sparse_rows_kernels(KernelRegistry& registry) {
  registry.add<FillEmptyRowsKernel>("SparseFillEmptyRows");
  for_each_numeric([&]<class T>(TypeTag<T>) {
    registry.add<FillEmptyRowsGradKernel<T>>("SparseFillEmptyRowsGrad",
                                             {{"T", {kDataTypeOf<T>}}});
  });
  for_each<float, double, Half>([&]<class T>(TypeTag<T>) {
    registry.add<SoftmaxSparseKernel<T>>("SparseSoftmax",
                                         {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
