#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("integers are not divided by zero") {
  for (const char* op :
       {"Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod"}) {
    CAPTURE(op);
    expect_error(run_op(op, {Tensor::scalar(7), Tensor::scalar(0)}),
                 Code::kInvalidArgument, "Integer division by zero");
    expect_error(run_op(op, {Tensor::vector<int64_t>({1, 2, 3}),
                             Tensor::vector<int64_t>({1, 0, 2})}),
                 Code::kInvalidArgument,
                 "Integer division by zero (element 1 of input 1, int64[3])");
  }
}

TEST_CASE("a zero divisor among broadcast operands is found") {
  expect_error(run_op("FloorDiv", {Tensor::of<int32_t>({2, 1}, {1, 2}),
                                   Tensor::of<int32_t>({1, 3}, {1, 2, 0})}),
               Code::kInvalidArgument, "(element 2 of input 1, int32[1,3])");
}

TEST_CASE("floating-point numbers are divided by zero") {
  const float infinity = std::numeric_limits<float>::infinity();
  expect_close(
      run_op("RealDiv",
             {Tensor::vector<float>({1, -1, 0}), Tensor::scalar(0.0f)}),
      Tensor::vector<float>(
          {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}));
}

TEST_CASE("the least integer by -1 wraps around") {
  const int64_t least = std::numeric_limits<int64_t>::min();
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv"})
    expect_close(
        run_op(op, {Tensor::scalar(least), Tensor::scalar<int64_t>(-1)}),
        Tensor::scalar(least));
  for (const char* op : {"FloorMod", "Mod"})
    expect_close(
        run_op(op, {Tensor::scalar(least), Tensor::scalar<int64_t>(-1)}),
        Tensor::scalar<int64_t>(0));
}

TEST_CASE("floor division rounds down, truncating division towards zero") {
  const Tensor x = Tensor::vector<int32_t>({7, -7, 7, -7});
  const Tensor y = Tensor::vector<int32_t>({2, 2, -2, -2});
  expect_close(run_op("FloorDiv", {x, y}),
               Tensor::vector<int32_t>({3, -4, -4, 3}));
  expect_close(run_op("TruncateDiv", {x, y}),
               Tensor::vector<int32_t>({3, -3, -3, 3}));
  expect_close(run_op("FloorMod", {x, y}),
               Tensor::vector<int32_t>({1, 1, -1, -1}));
  expect_close(run_op("TruncateMod", {x, y}),
               Tensor::vector<int32_t>({1, -1, 1, -1}));
}

TEST_CASE("integers have no negative powers") {
  expect_close(run_op("Pow", {Tensor::vector<int32_t>({2, -3, 0, 2}),
                              Tensor::vector<int32_t>({10, 3, 0, 40})}),
               Tensor::vector<int32_t>({1024, -27, 1, 0}));
  expect_error(run_op("Pow", {Tensor::scalar(1), Tensor::scalar(-1)}),
               Code::kInvalidArgument,
               "Integers to negative integer powers are not allowed");
}

TEST_CASE("a negative quotient too small for its type is rounded down") {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float infinity = std::numeric_limits<float>::infinity();
  expect_close(
      run_op("FloorDiv", {Tensor::scalar(-tiny), Tensor::scalar(2.0f)}),
      Tensor::scalar(-1.0f));
  expect_close(
      run_op("FloorDiv",
             {Tensor::vector<float>({-tiny, tiny, tiny, -tiny, -1e-30f, -1}),
              Tensor::vector<float>({2, -2, 2, -2, 1e30f, infinity})}),
      Tensor::vector<float>({-1, -1, 0, 0, -1, 0}));
  const double least = std::numeric_limits<double>::denorm_min();
  expect_close(
      run_op("FloorDiv", {Tensor::scalar(-least), Tensor::scalar(2.0)}),
      Tensor::scalar(-1.0));
}

}  // namespace tagflow::devices
