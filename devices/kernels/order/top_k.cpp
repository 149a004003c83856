// TopK, TopKV2, LowerBound, UpperBound: order among elements.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Whether a is larger than b; NaN is below all numbers, so that this is an
// order.
template <class T>
bool larger(const T& a, const T& b) {
  if (a > b) return true;
  return b != b && a == a;
}

// The k largest of each row, largest first, equal ones in their order. If the
// attribute "sorted" is false, they have the order of TensorFlow's heap.
class TopKKernel : public BytesKernel {
 public:
  explicit TopKKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2),
        k_(attr_of<int64_t>(info, "k")),
        sorted_(attr_of<bool>(info, "sorted")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    int64_t k = k_;
    if (context.num_inputs() == 2) {
      if (!context.input(1).is_scalar())
        return context.fail("k must be a scalar, is {}",
                            context.input(1).describe());
      k = index_at(context.input(1), 0);
    }
    if (input.rank() < 1)
      return context.fail("input must be at least a vector, is {}",
                          input.describe());
    const int64_t columns = input.dim(input.rank() - 1);
    if (k < 0 || k > columns)
      return context.fail("k = {} is not in [0, {}]", k, columns);
    const DataType index_type = context.node().output_dtypes()[1];
    const int64_t limit = index_type == DataType::kInt16   ? 1 << 15
                          : index_type == DataType::kInt32 ? int64_t(1) << 31
                                                           : columns;
    if (columns > limit)
      return context.fail("{} columns are too many for {} indices", columns,
                          dtype_name(index_type));
    Shape shape = input.shape();
    shape.set_dim(shape.rank() - 1, k);
    TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(0, shape));
    TAGFLOW_ASSIGN(Tensor * indices, context.allocate_output(1, shape));
    if (values->num_elements() == 0) return {};
    visit_real(input.dtype(), [&]<class T>(TypeTag<T>) {
      detail::visit_among<int16_t, int32_t, int64_t>(
          index_type, [&]<class Index>(TypeTag<Index>) {
            select_rows<T, Index>(context, columns, k, sorted_, *values,
                                  *indices);
          });
    });
    return {};
  }

 private:
  template <class T, class Index>
  static void select_rows(const KernelContext& context, int64_t columns,
                          int64_t k, bool sorted, Tensor& values,
                          Tensor& indices) {
    const T* from = context.input(0).data<T>();
    T* top = values.mutable_data<T>();
    Index* places = indices.mutable_data<Index>();
    auto body = [&](int64_t begin, int64_t end) {
      std::vector<Index> order(k == 1 ? size_t(0) : size_t(columns));
      for (int64_t row = begin; row < end; ++row) {
        const T* x = from + row * columns;
        Index* place = places + row * k;
        if (k == 1) {
          *place = Index(find_largest(x, columns));
        } else {
          std::iota(order.begin(), order.end(), Index(0));
          auto before = [x, &context](Index a, Index b) {
            context.check_cancelled();
            if (larger(x[a], x[b])) return true;
            if (larger(x[b], x[a])) return false;
            return a < b;
          };
          if (k < columns && !sorted) {
            select_by_heap(order, size_t(k), before);
          } else {
            if (k < columns)
              std::nth_element(order.begin(), order.begin() + k, order.end(),
                               before);
            std::sort(order.begin(), order.begin() + k, before);
          }
          std::copy_n(order.begin(), k, place);
        }
        for (int64_t i = 0; i < k; ++i) top[row * k + i] = x[place[i]];
      }
    };
    context.parallel_for(values.num_elements() / k, 20 + 3 * double(columns),
                         body);
  }

  // Moves the first k of `order` by `before` to its front: a heap of them, the
  // last on top, and one spare place for the next candidate.
  template <class Index, class Before>
  static void select_by_heap(std::vector<Index>& order, size_t k,
                             Before before) {
    const auto begin = order.begin();
    const auto end = begin + std::ptrdiff_t(k) + 1;
    std::make_heap(begin, end, before);
    std::pop_heap(begin, end, before);
    for (size_t next = k + 1; next < order.size(); ++next) {
      if (!before(order[next], order[0])) continue;
      order[k] = order[next];
      std::push_heap(begin, end, before);
      std::pop_heap(begin, end, before);
    }
  }

  template <class T>
  static int64_t find_largest(const T* x, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i)
      if (larger(x[i], x[best])) best = i;
    return best;
  }

  int64_t k_;
  bool sorted_;
};

// The position of each value of a row in the sorted row of the same number.
class BoundKernel : public BytesKernel {
 public:
  explicit BoundKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5),
        upper_(info.node().op() == "UpperBound") {}

  Status compute(KernelContext& context) const override {
    const Tensor& sorted = context.input(0);
    const Tensor& values = context.input(1);
    if (sorted.rank() != 2 || values.rank() != 2 ||
        sorted.dim(0) != values.dim(0))
      return context.fail("{} and {} must be matrices of as many rows",
                          sorted.describe(), values.describe());
    if (sorted.dim(1) > std::numeric_limits<int32_t>::max() &&
        context.node().output_dtypes()[0] == DataType::kInt32)
      return context.fail("{} has rows too long for int32", sorted.describe());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, values.shape()));
    const bool known = visit_real(sorted.dtype(), [&]<class T>(TypeTag<T>) {
      if (output->dtype() == DataType::kInt64) {
        search<T, int64_t>(context, sorted, values, *output);
      } else {
        search<T, int32_t>(context, sorted, values, *output);
      }
    });
    if (!known)
      return error(Code::kUnimplemented, "[{}] cannot order elements of {}",
                   context.node().op(), sorted.describe());
    return {};
  }

 private:
  template <class T, class Index>
  void search(const KernelContext& context, const Tensor& sorted,
              const Tensor& values, Tensor& output) const {
    const int64_t columns = sorted.dim(1);
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      context.check_cancelled();
      const T* row = sorted.data<T>() + i / values.dim(1) * columns;
      const T& value = values.data<T>()[i];
      const T* at = upper_ ? std::upper_bound(row, row + columns, value)
                           : std::lower_bound(row, row + columns, value);
      output.mutable_data<Index>()[i] = Index(at - row);
    }
  }

  bool upper_;
};

}  // namespace

void register_top_k_kernels(KernelRegistry& registry) {
  registry.add<TopKKernel>("TopK");
  registry.add<TopKKernel>("TopKV2");
  registry.add<BoundKernel>("LowerBound");
  registry.add<BoundKernel>("UpperBound");
}

}  // namespace tagflow::devices
