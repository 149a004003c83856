// TopK; TopKV2, sorted, is among the recorded array cases.
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

// What TensorFlow 2.21 gives.
TEST_CASE("TopKV2 gives unsorted results in the order of TensorFlow's heap") {
  const auto places = [](std::initializer_list<int32_t> row, int32_t k) {
    return run_op("TopKV2",
                  {Tensor::vector<int32_t>(row), Tensor::scalar<int32_t>(k)},
                  {{"sorted", false}});
  };
  const auto expect_places = [](const Result<Outputs>& found,
                                std::initializer_list<int32_t> expected) {
    REQUIRE_MESSAGE(found.ok(), found.status().to_string());
    expect_close((*found)[1], Tensor::vector<int32_t>(expected));
  };
  expect_places(places({-2, -2, -1}, 2), {0, 2});
  expect_places(places({1, -3, 1}, 2), {2, 0});
  expect_places(places({0, 0, -3, -1, 2, 1, -1, -1}, 7), {7, 3, 6, 1, 4, 5, 0});
  expect_places(
      places({-1, 0, -3, 0, 1, 2, -3, -3, 0, -3, -3, -3, 1, 1, 3, 3}, 2),
      {15, 14});
  // All of them, or one, are sorted all the same.
  expect_places(places({1, 3, 2, 3}, 4), {1, 3, 2, 0});
  expect_places(places({1, 3, 2, 3}, 1), {1});
}

TEST_CASE("TopK of more than there is, is refused") {
  const Tensor x = Tensor::vector<float>({1, 2});
  expect_error(run_op("TopK", {x}, {{"k", 3}}), Code::kInvalidArgument, "3");
}

}  // namespace tagflow::devices
