// Buckets by boundaries.
#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Tensor floats(std::initializer_list<float> values) {
  return Tensor::vector<float>(values);
}

}  // namespace

TEST_CASE("Bucketize refuses boundaries that do not ascend") {
  const auto bucketize = [](std::vector<float> boundaries) {
    return run_op("Bucketize", {floats({-1, 0, 5})},
                  {{"boundaries", std::move(boundaries)}});
  };
  expect_close((*bucketize({0, 3}))[0], Tensor::vector<int32_t>({0, 1, 2}));
  expect_close((*bucketize({}))[0], Tensor::vector<int32_t>({0, 0, 0}));
  expect_error(bucketize({3, 0}), kInvalid,
               "boundaries must ascend, but 3 comes before 0");
  expect_error(bucketize({0, std::numeric_limits<float>::quiet_NaN()}),
               kInvalid, "boundaries must ascend");
}

}  // namespace tagflow::devices
