#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("a roll goes as far as it is told along each axis") {
  const Tensor input = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_close(run_op("Roll", {input, Tensor::scalar(4), Tensor::scalar(1)}),
               Tensor::of<float>({2, 3}, {3, 1, 2, 6, 4, 5}));
  expect_close(run_op("Roll", {input, Tensor::vector<int32_t>({1, -1}),
                               Tensor::vector<int32_t>({0, -1})}),
               Tensor::of<float>({2, 3}, {5, 6, 4, 2, 3, 1}));
}

TEST_CASE("the shifts and axes of a roll are of one shape") {
  const Tensor input = Tensor::of<float>({2}, {1, 2});
  const Tensor scalar = Tensor::scalar(0), one = Tensor::vector<int32_t>({0});
  expect_error(run_op("Roll", {input, scalar, one}), Code::kInvalidArgument,
               "must be scalars or as many");
  expect_error(run_op("Roll", {input, one, scalar}), Code::kInvalidArgument,
               "must be scalars or as many");
}

}  // namespace tagflow::devices
