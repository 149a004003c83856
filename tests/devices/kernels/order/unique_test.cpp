#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("UniqueV2: slices without elements are equal, however many") {
  constexpr int64_t kMany = int64_t{1} << 40;
  const auto unique = [](const Shape& shape) {
    return run_op("UniqueV2", {Tensor::make(DataType::kFloat, shape),
                               Tensor::vector<int64_t>({1})});
  };
  const auto none = unique({kMany, 0});
  expect_close(none, Tensor::make(DataType::kFloat, {kMany, 0}));
  expect_close((*none)[1], Tensor::make(DataType::kInt32, {0}));
  const auto one = unique({kMany, 3, 0});
  expect_close(one, Tensor::make(DataType::kFloat, {kMany, 1, 0}));
  expect_close((*one)[1], Tensor::vector<int32_t>({0, 0, 0}));
}

}  // namespace tagflow::devices
