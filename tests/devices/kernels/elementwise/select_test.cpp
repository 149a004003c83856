#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

const Tensor kX = Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4});
const Tensor kY = Tensor::of<int32_t>({2, 2}, {5, 6, 7, 8});
const Tensor kMixed = Tensor::vector<bool>({true, false});

}  // namespace

TEST_CASE("Select chooses all, rows or elements") {
  expect_close(run_op("Select", {Tensor::scalar(false), kX, kY}), kY);
  expect_close(run_op("Select", {kMixed, kX, kY}),
               Tensor::of<int32_t>({2, 2}, {1, 2, 7, 8}));
  const Tensor each = Tensor::of<bool>({2, 2}, {true, false, false, true});
  expect_close(run_op("Select", {each, kX, kY}),
               Tensor::of<int32_t>({2, 2}, {1, 6, 7, 4}));
}

TEST_CASE("Select refuses what it cannot align") {
  expect_error(
      run_op("Select", {Tensor::vector<bool>({true, false, true}), kX, kY}),
      Code::kInvalidArgument, "of their shape [2,2], not [3]");
  expect_error(run_op("Select", {kMixed, kX, Tensor::vector<int32_t>({1})}),
               Code::kInvalidArgument,
               "the values must have one shape, not int32[2,2] and int32[1]");
  expect_error(run_op("Select", {kMixed, Tensor::scalar(1), Tensor::scalar(2)}),
               Code::kInvalidArgument, "of their shape [], not [2]");
}

TEST_CASE("SelectV2 broadcasts its three inputs") {
  expect_close(run_op("SelectV2", {kMixed, kX, kY}),
               Tensor::of<int32_t>({2, 2}, {1, 6, 3, 8}));
  expect_close(run_op("SelectV2", {Tensor::of<bool>({2, 1}, {true, false}), kX,
                                   Tensor::scalar(0)}),
               Tensor::of<int32_t>({2, 2}, {1, 2, 0, 0}));
  expect_close(
      run_op("SelectV2", {kMixed, Tensor::scalar(1), Tensor::scalar(2)}),
      Tensor::vector<int32_t>({1, 2}));
  expect_close(
      run_op("SelectV2", {Tensor::scalar(true), Tensor::scalar(1), kX}),
      Tensor::of<int32_t>({2, 2}, {1, 1, 1, 1}));
  expect_error(run_op("SelectV2", {kMixed, Tensor::vector<int32_t>({1, 2, 3}),
                                   Tensor::scalar(1)}),
               Code::kInvalidArgument,
               "incompatible shapes: [2] and [3], of condition [2]");
}

TEST_CASE("strings are selected") {
  expect_close(
      run_op("Select", {kMixed, Tensor::of<std::string>({2}, {"a", "b"}),
                        Tensor::of<std::string>({2}, {"c", "d"})}),
      Tensor::of<std::string>({2}, {"a", "d"}));
}

TEST_CASE("large selections are split over workers") {
  const int64_t n = 100000;
  Tensor condition = Tensor::make(DataType::kBool, {n});
  Tensor x = Tensor::make(DataType::kFloat, {n});
  Tensor expected = Tensor::make(DataType::kFloat, {n});
  for (int64_t i = 0; i < n; ++i) {
    condition.mutable_data<bool>()[i] = i % 3 == 0;
    x.mutable_data<float>()[i] = float(i);
    expected.mutable_data<float>()[i] = i % 3 == 0 ? float(i) : -1;
  }
  expect_close(run_op("SelectV2", {condition, x, Tensor::scalar(-1.0f)}),
               expected);
}

TEST_CASE("values are clipped to limits, NaN stays") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::vector<float>({1, nan, 3, 5});
  expect_close(
      run_op("ClipByValue", {x, Tensor::scalar(2.0f), Tensor::scalar(4.0f)}),
      Tensor::vector<float>({2, nan, 3, 4}));
  expect_close(run_op("ClipByValue", {x, Tensor::vector<float>({0, 0, 4, 6}),
                                      Tensor::scalar(9.0f)}),
               Tensor::vector<float>({1, nan, 4, 6}));
  expect_close(run_op("ClipByValue", {Tensor::scalar(7), Tensor::scalar(1),
                                      Tensor::scalar(3)}),
               Tensor::scalar(3));
  // The lower limit wins over a smaller upper one.
  expect_close(run_op("ClipByValue", {Tensor::scalar(3), Tensor::scalar(4),
                                      Tensor::scalar(2)}),
               Tensor::scalar(4));
  // Each part of a complex number by itself.
  expect_close(run_op("ClipByValue", {Tensor::scalar(Complex128(-5, 9)),
                                      Tensor::scalar(Complex128(-1, -2)),
                                      Tensor::scalar(Complex128(3, 4))}),
               Tensor::scalar(Complex128(-1, 4)));
  expect_error(run_op("ClipByValue",
                      {x, Tensor::vector<float>({1, 2}), Tensor::scalar(1.0f)}),
               Code::kInvalidArgument,
               "limits must be scalars or of the value's shape [4], not [2]");
}

}  // namespace tagflow::devices
