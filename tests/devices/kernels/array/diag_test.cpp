#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("diagonals longer than a dimension can be are refused") {
  const Tensor empty =
      Tensor::make(DataType::kFloat, {0, std::numeric_limits<int64_t>::max()});
  const Tensor open = Tensor::scalar(-1), zero = Tensor::scalar(0.0f);
  for (const int k : {-5, 5})
    expect_error(
        run_op("MatrixDiagV3", {empty, Tensor::scalar(k), open, open, zero}),
        Code::kInvalidArgument, "are too long");
}

}  // namespace tagflow::devices
