#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("DynamicStitch takes the largest index that there is") {
  const int32_t last = std::numeric_limits<int32_t>::max();
  const auto stitched =
      run_op("DynamicStitch", {Tensor::vector<int32_t>({last, 0}),
                               Tensor::make(DataType::kFloat, {2, 0})});
  expect_close(stitched,
               Tensor::make(DataType::kFloat, {int64_t{last} + 1, 0}));
}

}  // namespace tagflow::devices
