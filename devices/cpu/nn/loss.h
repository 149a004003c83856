// Shapes of cross entropies, for the kernels of all devices.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

struct LossShape {
  int64_t rows = 0, classes = 0;
};

// Of SoftmaxCrossEntropyWithLogits, whose inputs broadcast to a matrix.
// InvalidArgument where they do not.
Result<LossShape> loss_shape(const KernelContext& context);
// Of SparseSoftmaxCrossEntropyWithLogits. InvalidArgument where the inputs are
// no matrix and a label for each row.
Result<LossShape> sparse_loss_shape(const KernelContext& context);
// InvalidArgument where a label is no class. REQUIRES: the host can read them.
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
