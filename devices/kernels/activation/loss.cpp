// Cross entropies between softmax(features) and labels.
#include "devices/kernels/activation/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/activation/softmax.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

Result<LossShape> loss_shape(const KernelContext& context) {
  const Tensor& logits = context.input(0);
  const Tensor& labels = context.input(1);
  const auto dim = [](const Tensor& t, int i) {
    return t.rank() == 2 ? t.dim(i) : i == 1 && t.rank() == 1 ? t.dim(0) : 1;
  };
  bool fits = std::max(logits.rank(), labels.rank()) == 2;
  int64_t sizes[2] = {};
  for (int i = 0; fits && i < 2; ++i) {
    const int64_t a = dim(logits, i), b = dim(labels, i);
    fits = a == b || a == 1 || b == 1;
    sizes[i] = a == 1 ? b : a;
  }
  if (!fits)
    return context.fail("logits {} and labels {} do not fit [batch, classes]",
                        logits.describe(), labels.describe());
  return LossShape{sizes[0], sizes[1]};
}

Result<LossShape> sparse_loss_shape(const KernelContext& context) {
  const Tensor& logits = context.input(0);
  const Tensor& labels = context.input(1);
  if (logits.rank() != 2)
    return context.fail("the logits are {}, not a matrix", logits.describe());
  const LossShape shape{logits.dim(0), logits.dim(1)};
  if (labels.rank() != 1 || labels.dim(0) != shape.rows)
    return context.fail("the labels are {}, not a vector of {}",
                        labels.describe(), shape.rows);
  if (shape.classes == 0 && shape.rows > 0)
    return context.fail("the logits are {}, without a class",
                        logits.describe());
  return shape;
}

Status check_labels(const KernelContext& context, int64_t classes) {
  const Tensor& labels = context.input(1);
  for (int64_t i = 0; i < labels.num_elements(); ++i)
    if (const int64_t label = index_at(labels, i);
        label < 0 || label >= classes)
      return context.fail("label {} of row {} is out of range [0, {})", label,
                          i, classes);
  return {};
}

Status allocate_loss(KernelContext& context, LossShape shape) {
  TAGFLOW_RETURN_IF_ERROR(
      context.allocate_output(0, Shape{shape.rows}).status());
  const int64_t dims[] = {shape.rows, shape.classes};
  TAGFLOW_ASSIGN(const Shape matrix, Shape::make(dims));
  return context.allocate_output(1, matrix).status();
}

namespace {

class CrossEntropyBase : public Kernel {
 public:
  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 3;
  }
};

template <class T>
class CrossEntropyKernel : public CrossEntropyBase {
  using W = SoftmaxWork<T>;

 public:
  explicit CrossEntropyKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    const Tensor& labels = context.input(1);
    TAGFLOW_ASSIGN(const LossShape size, loss_shape(context));
    TAGFLOW_RETURN_IF_ERROR(allocate_loss(context, size));
    T* loss = context.output(0).mutable_data<T>();
    T* backprop = context.output(1).mutable_data<T>();
    if (size.classes == 0) {
      std::fill_n(loss, size.rows, T(0));
      return Status();
    }
    const Matrix x(logits, size), y(labels, size);
    context.parallel_for(size.rows, 10 + 3 * double(size.classes),
                         [&](int64_t begin, int64_t end) {
                           std::vector<W> buffer(size_t(size.classes) * 3);
                           for (int64_t i = begin; i < end; ++i)
                             loss[i] = row(x, y, i, size.classes, buffer.data(),
                                           backprop + i * size.classes);
                         });
    return Status();
  }

 private:
  // Element (i, j) of a matrix that repeats its rows or columns.
  struct Matrix : LossSteps {
    Matrix(const Tensor& t, LossShape size)
        : LossSteps(t, size), data(t.data<T>()) {}
    T at(int64_t i, int64_t j) const { return data[i * row + j * column]; }
    const T* data;
  };

  static T row(const Matrix& x, const Matrix& y, int64_t i, int64_t classes,
               W* buffer, T* backprop) {
    W* exps = buffer + classes;
    W* values = exps + classes;
    for (int64_t j = 0; j < classes; ++j)
      values[j] = static_cast<W>(x.at(i, j));
    const W sum = exp_row(values, classes, buffer, exps);
    const W log_sum = std::log(sum);
    for (int64_t j = 0; j < classes; ++j) {
      const W label = static_cast<W>(y.at(i, j));
      backprop[j] = static_cast<T>(exps[j] / sum - label);
      values[j] = label * (log_sum - buffer[j]);
    }
    return static_cast<T>(row_sum(values, classes));
  }
};

template <class T>
class SparseCrossEntropyKernel : public CrossEntropyBase {
  using W = SoftmaxWork<T>;

 public:
  explicit SparseCrossEntropyKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& labels = context.input(1);
    TAGFLOW_ASSIGN(const LossShape size, sparse_loss_shape(context));
    TAGFLOW_RETURN_IF_ERROR(allocate_loss(context, size));
    TAGFLOW_RETURN_IF_ERROR(check_labels(context, size.classes));
    return labels.dtype() == DataType::kInt32
               ? compute_rows<int32_t>(context, size.classes)
               : compute_rows<int64_t>(context, size.classes);
  }

 private:
  template <class Label>
  static Status compute_rows(KernelContext& context, int64_t classes) {
    const T* logits = context.input(0).data<T>();
    const Label* labels = context.input(1).data<Label>();
    const int64_t rows = context.input(1).num_elements();
    T* loss = context.output(0).mutable_data<T>();
    T* backprop = context.output(1).mutable_data<T>();
    context.parallel_for(
        rows, 10 + 2 * double(classes), [&](int64_t begin, int64_t end) {
          std::vector<W> buffer(size_t(classes) * 2);
          W* exps = buffer.data() + classes;
          for (int64_t i = begin; i < end; ++i) {
            const W sum =
                exp_row(logits + i * classes, classes, buffer.data(), exps);
            const int64_t label = labels[i];
            loss[i] = static_cast<T>(std::log(sum) - buffer[size_t(label)]);
            T* to = backprop + i * classes;
            for (int64_t j = 0; j < classes; ++j)
              to[j] = static_cast<T>(exps[j] / sum - W(j == label));
          }
        });
    return Status();
  }
};

template <class T>
void add(KernelRegistry& registry) {
  registry.add<CrossEntropyKernel<T>>("SoftmaxCrossEntropyWithLogits",
                                      {{"T", {kDataTypeOf<T>}}});
  registry.add<SparseCrossEntropyKernel<T>>(
      "SparseSoftmaxCrossEntropyWithLogits", {{"T", {kDataTypeOf<T>}}});
}

}  // namespace

void register_loss_kernels(KernelRegistry& registry) {
  add<float>(registry);
  add<double>(registry);
  add<Half>(registry);
  add<BFloat16>(registry);
}

}  // namespace tagflow::devices
