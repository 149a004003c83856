#include "devices/kernels/recurrent/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tagflow::devices {

Result<CtcSizes> ctc_sizes(const KernelContext& context, int lengths,
                           bool is_decoder) {
  const Tensor& logits = context.input(0);
  const Tensor& given = context.input(lengths);
  if (logits.rank() != 3)
    return context.fail("inputs must be [steps, batch, classes], not {}",
                        logits.describe());
  if (given.rank() != 1)
    return context.fail("sequence_length must be a vector, not {}",
                        given.describe());
  CtcSizes sizes{logits.dim(0), logits.dim(1), logits.dim(2),
                 given.data<int32_t>()};
  if (given.dim(0) != sizes.batch)
    return error(
        is_decoder ? Code::kFailedPrecondition : Code::kInvalidArgument,
        "[{}] sequence_length has {} elements for a batch of {}",
        context.node().op(), given.dim(0), sizes.batch);
  if (sizes.classes < 1)
    return context.fail("inputs have no classes: {}", logits.describe());
  for (int64_t row = 0; row < sizes.batch; ++row)
    if (sizes.lengths[row] < 0 || sizes.lengths[row] > sizes.steps)
      return error(
          is_decoder ? Code::kFailedPrecondition : Code::kInvalidArgument,
          "[{}] sequence_length[{}] = {} is outside [0, {}], the steps",
          context.node().op(), row, sizes.lengths[row], sizes.steps);
  return sizes;
}

template <class T>
T log_add(T a, T b) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  if (a == kNone) return b;
  if (b == kNone) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

template <class T>
T log_sum(const T* logits, int64_t classes) {
  const T most = *std::max_element(logits, logits + classes);
  T sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - most);
  return most + std::log(sum);
}

template float log_add(float, float);
template double log_add(double, double);
template float log_sum(const float*, int64_t);
template double log_sum(const double*, int64_t);

}  // namespace tagflow::devices
