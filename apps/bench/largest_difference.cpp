#include "apps/bench/largest_difference.h"

#include <algorithm>
#include <cmath>

namespace tagflow::apps {

Result<double> largest_difference(const Tensor& actual,
                                  const Tensor& expected) {
  if (actual.dtype() != DataType::kFloat ||
      expected.dtype() != DataType::kFloat ||
      !(actual.shape() == expected.shape()))
    return error(Code::kDataLoss,
                 "[bench] the result is {}, but TensorFlow's is {}",
                 actual.describe(), expected.describe());
  double most = 0, largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double wanted = expected.data<float>()[i];
    const double off = std::abs(actual.data<float>()[i] - wanted);
    // Not by max(), which would lose NaN.
    if (!std::isnan(most) && !(off <= most)) most = off;
    largest = std::max(largest, std::abs(wanted));
  }
  return most / std::max(largest, 1e-30);
}

}  // namespace tagflow::apps
