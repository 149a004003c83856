// Shapes of cross entropies, for the kernels of all devices.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

struct LossShape {
  int64_t rows = 0, classes = 0;
};

// For SoftmaxCrossEntropyWithLogits, whose inputs broadcast to a matrix.
// InvalidArgument if they do not.
Result<LossShape> loss_shape(const KernelContext& context);
// For SparseSoftmaxCrossEntropyWithLogits. InvalidArgument unless the inputs
// are a matrix and a label for each row.
Result<LossShape> sparse_loss_shape(const KernelContext& context);
// InvalidArgument if a label is not a class. REQUIRES: host_readable().
Status check_labels(const KernelContext& context, int64_t classes);

// The distances between elements of a matrix that may repeat its rows or
// columns.
struct LossSteps {
  LossSteps(const Tensor& matrix, LossShape shape) {
    const int64_t columns =
        matrix.rank() == 0 ? 1 : matrix.dim(matrix.rank() - 1);
    const int64_t rows = matrix.rank() == 2 ? matrix.dim(0) : 1;
    column = columns == 1 && shape.classes != 1 ? 0 : 1;
    row = rows == 1 && shape.rows != 1 ? 0 : columns;
  }
  int64_t row, column;
};

// Output 0 of [rows] and output 1 of [rows, classes].
Status allocate_loss(KernelContext& context, LossShape shape);

}  // namespace tagflow::devices
