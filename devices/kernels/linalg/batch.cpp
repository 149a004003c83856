#include "devices/kernels/linalg/batch.h"

#include <algorithm>
#include <mutex>

#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/interruption.h"

namespace tagflow::devices {

Result<int64_t> count_matrices(const KernelContext& context, int input,
                               bool must_be_square) {
  const Tensor& tensor = context.input(input);
  const int rank = tensor.rank();
  if (rank < 2)
    return context.fail("input {} is {}, of fewer than two dimensions", input,
                        tensor.describe());
  if (must_be_square && tensor.dim(rank - 2) != tensor.dim(rank - 1))
    return context.fail("input {} is {}, whose matrices are not square", input,
                        tensor.describe());
  int64_t count = 1;
  for (int d = 0; d < rank - 2; ++d)  // may overflow without elements only
    count = int64_t(uint64_t(count) * uint64_t(tensor.dim(d)));
  return tensor.num_elements() == 0 && count < 0 ? 0 : count;
}

Result<Shape> batch_shape(const Tensor& matrices,
                          std::initializer_list<int64_t> dims) {
  Shape::Dims all;
  for (int d = 0; d < matrices.rank() - 2; ++d) all.push_back(matrices.dim(d));
  all.insert(all.end(), dims);
  return Shape::make({all.data(), all.size()});
}

namespace {

// While it exists, this thread decomposes a matrix for so many nanoseconds.
class Decomposing {
 public:
  Decomposing(const KernelContext& context, double cost) {
    if (cost >= KernelContext::kBlockNanoseconds) decomposing = &context;
  }
  ~Decomposing() { decomposing = nullptr; }
  Decomposing(const Decomposing&) = delete;
  Decomposing& operator=(const Decomposing&) = delete;
};

}  // namespace

void check_decomposition() { decomposing->check_cancelled(); }

Status for_each_matrix(const KernelContext& context, int64_t count, double cost,
                       const std::function<const char*(int64_t)>& body) {
  std::mutex mutex;
  int64_t first = count;
  const char* what = nullptr;
  context.parallel_for(count, cost, [&](int64_t begin, int64_t end) {
    const Decomposing large(context, cost);
    for (int64_t i = begin; i < end; ++i) {
      const char* wrong = body(i);
      if (wrong == nullptr) continue;
      const std::lock_guard lock(mutex);
      if (i < first) {
        first = i;
        what = wrong;
      }
      return;
    }
  });
  if (what == nullptr) return {};
  return context.fail("matrix {} {}", first, what);
}

double CubicKernel::matrix_cost(const Tensor& tensor) const {
  const int rank = tensor.rank();
  if (rank < 2) return 0;
  const auto side =
      double(std::max(tensor.dim(rank - 2), tensor.dim(rank - 1)));
  return 100 + factor_ * side * side * side;
}

double CubicKernel::cost(const KernelContext& context) const {
  double cost = 200;
  for (const Tensor& input : context.inputs()) {
    if (input.rank() < 2 || input.num_elements() == 0) continue;
    const double size = double(input.dim(input.rank() - 2)) *
                        double(input.dim(input.rank() - 1));
    cost += matrix_cost(input) * double(input.num_elements()) / size;
  }
  return cost;
}

}  // namespace tagflow::devices
