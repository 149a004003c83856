#include <doctest/doctest.h>

#include <limits>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("fills of absurd sizes are refused") {
  const int64_t big = int64_t(1) << 40;
  const Tensor one = Tensor::scalar(1.0);
  const auto outputs = run_op("Fill", {Tensor::vector<int64_t>({big}), one});
  CHECK(outputs.status().code() == Code::kResourceExhausted);
  expect_error(run_op("Fill", {Tensor::vector<int64_t>({big, big}), one}),
               Code::kInvalidArgument, "overflows");
  expect_error(run_op("Fill", {Tensor::vector<int64_t>({-1}), one}),
               Code::kInvalidArgument, "negative");
  expect_error(run_op("Fill", {Tensor::vector<int64_t>({2}),
                               Tensor::vector<double>({1, 2})}),
               Code::kInvalidArgument, "scalar");
}

TEST_CASE("Fill takes a scalar as size if its shape is known late") {
  expect_close(run_op_beyond_inference(
                   "Fill", {Tensor::scalar(2), Tensor::scalar(1.5f)}),
               Tensor::vector<float>({1.5f, 1.5f}));
  expect_error(
      run_op("Fill", {Tensor::of<int32_t>({1, 1}, {2}), Tensor::scalar(1.5f)}),
      Code::kInvalidArgument, "dims must be a vector");
}

TEST_CASE("Fill, OnesLike and ZerosLike take strings and bools") {
  expect_close(
      run_op("Fill", {Tensor::vector<int32_t>({1, 2}),
                      Tensor::scalar("a long enough string to own")}),
      Tensor::of<std::string>({1, 2}, {"a long enough string to own",
                                       "a long enough string to own"}));
  expect_close(run_op("OnesLike", {Tensor::vector<bool>({false, true})}),
               Tensor::vector<bool>({true, true}));
  expect_close(run_op("ZerosLike", {Tensor::scalar("x")}), Tensor::scalar(""));
}

TEST_CASE("Fill reaches every element of a large tensor") {
  const int32_t size = 100003;
  const auto outputs = run_op(
      "Fill", {Tensor::vector<int32_t>({size}), Tensor::scalar(int16_t(7))});
  REQUIRE(outputs.ok());
  for (int16_t value : (*outputs)[0].flat<int16_t>()) REQUIRE(value == 7);
}

TEST_CASE("ranges end where their type does") {
  const int64_t max = std::numeric_limits<int64_t>::max();
  expect_close(run_op("Range", {Tensor::scalar(max - 3), Tensor::scalar(max),
                                Tensor::scalar(int64_t(2))}),
               Tensor::vector<int64_t>({max - 3, max - 1}));
  expect_close(run_op("Range", {Tensor::scalar(max), Tensor::scalar(-max),
                                Tensor::scalar(-max)}),
               Tensor::vector<int64_t>({max, 0}));
  expect_error(
      run_op("Range", {Tensor::scalar(uint64_t(3)), Tensor::scalar(uint64_t(1)),
                       Tensor::scalar(uint64_t(1))}),
      Code::kInvalidArgument, "away from");
}

TEST_CASE("ranges that never end are refused") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor zero = Tensor::scalar(0.0f), one = Tensor::scalar(1.0f);
  expect_error(run_op("Range", {zero, Tensor::scalar(infinity), one}),
               Code::kInvalidArgument, "no finite length");
  expect_error(
      run_op("Range", {zero, Tensor::scalar(infinity - infinity), one}),
      Code::kInvalidArgument, "no finite length");
  expect_error(run_op("Range", {zero, one, zero}), Code::kInvalidArgument,
               "delta is zero");
  const auto huge =
      run_op("Range", {Tensor::scalar(int64_t(0)),
                       Tensor::scalar(std::numeric_limits<int64_t>::max()),
                       Tensor::scalar(int64_t(1))});
  CHECK_FALSE(huge.ok());
}

TEST_CASE("a range between no numbers is refused, and costs nothing") {
  const Tensor one = Tensor::scalar(int64_t{1});
  const Tensor none = Tensor::make(DataType::kInt64, {0, 0});
  expect_error(run_op("Range", {none, one, one}), Code::kInvalidArgument,
               "[Range] input 0 must be a scalar, got int64[0,0]");
  expect_error(run_op("Range", {one, none, one}), Code::kInvalidArgument,
               "[Range] input 1 must be a scalar, got int64[0,0]");
}

TEST_CASE("a linear space ends exactly at its stop") {
  const auto outputs =
      run_op("LinSpace",
             {Tensor::scalar(0.1f), Tensor::scalar(0.7f), Tensor::scalar(7)});
  REQUIRE(outputs.ok());
  CHECK((*outputs)[0].data<float>()[6] == 0.7f);
  expect_close(run_op("LinSpace", {Tensor::scalar(0.5), Tensor::scalar(3.0),
                                   Tensor::scalar(1)}),
               Tensor::vector<double>({0.5}));
}

TEST_CASE("the length of a range of floats is that of its type's arithmetic") {
  const auto length = [](auto start, auto limit, auto delta) {
    const auto range = run_op(
        "Range",
        {Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)});
    REQUIRE_MESSAGE(range.ok(), range.status().to_string());
    return (*range)[0].num_elements();
  };
  // As a float, 0.3 / 0.1 is 3, and 20 / 0.01 is 2000; as doubles, these floats
  // have a larger quotient.
  CHECK(length(0.0f, 0.3f, 0.1f) == 3);
  CHECK(length(0.3f, 0.0f, -0.1f) == 3);
  CHECK(length(-10.0f, 10.0f, 0.01f) == 2000);
  CHECK(length(0.0, 0.3, 0.1) == 3);
  CHECK(length(-10.0, 10.0, 0.01) == 2000);
  CHECK(length(BFloat16(0.0f), BFloat16(0.3f), BFloat16(0.1f)) == 3);
  CHECK(length(BFloat16(-10.0f), BFloat16(10.0f), BFloat16(0.01f)) == 2000);
  CHECK(length(Half(-10.0f), Half(10.0f), Half(0.01f)) == 2000);
  CHECK(length(Half(0.0f), Half(0.3f), Half(0.1f)) == 4);
}

}  // namespace tagflow::devices
