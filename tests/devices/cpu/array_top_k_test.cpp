// TopK; TopKV2 is among the recorded array cases.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("TopK takes k from an attribute, TopKV2 from an input") {
  const Tensor x = Tensor::vector<float>({1, 4, 2, 4});
  for (const auto& found :
       {run_op("TopK", {x}, {{"k", 2}}),
        run_op("TopKV2", {x, Tensor::scalar<int32_t>(2)})}) {
    REQUIRE_MESSAGE(found.ok(), found.status().to_string());
    expect_close((*found)[0], Tensor::vector<float>({4, 4}));
    expect_close((*found)[1], Tensor::vector<int32_t>({1, 3}));
  }
}

TEST_CASE("TopK of more than there is, is refused") {
  const Tensor x = Tensor::vector<float>({1, 2});
  expect_error(run_op("TopK", {x}, {{"k", 3}}), Code::kInvalidArgument, "3");
}

}  // namespace tagflow::devices
