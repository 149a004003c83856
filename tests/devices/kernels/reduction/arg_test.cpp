// ArgMax, ArgMin and CumulativeLogsumexp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Result<Outputs> arg(const char* op, const Tensor& in, int32_t dimension) {
  return run_op(op, {in, Tensor::scalar(dimension)});
}

TEST_CASE("the position of the first extreme is found along any dimension") {
  const Tensor in = Tensor::of<float>({2, 3}, {1, 9, 9, 4, 0, 4});
  expect_close(arg("ArgMax", in, 1), Tensor::vector<int64_t>({1, 0}));
  expect_close(arg("ArgMax", in, -2), Tensor::vector<int64_t>({1, 0, 0}));
  expect_close(arg("ArgMin", in, 1), Tensor::vector<int64_t>({0, 1}));
  expect_close(arg("ArgMin", in, 0), Tensor::vector<int64_t>({0, 1, 1}));
}

TEST_CASE("ArgMax searches long rows and wide columns to their end") {
  for (int64_t at : {0, 31, 32, 299, 300}) {
    Tensor in = Tensor::make(DataType::kInt32, {301});
    for (int32_t& value : in.mutable_flat<int32_t>()) value = 5;
    in.mutable_data<int32_t>()[at] = 7;
    expect_close(arg("ArgMax", in, 0), Tensor::scalar<int64_t>(at));
    // As 301 columns of two rows, the larger one in row 1 at `at` only.
    Tensor two = Tensor::make(DataType::kInt32, {2, 301});
    for (int32_t& value : two.mutable_flat<int32_t>()) value = 0;
    two.mutable_data<int32_t>()[301 + at] = 1;
    const auto found = arg("ArgMax", two, 0);
    REQUIRE(found.ok());
    for (int64_t i = 0; i < 301; ++i)
      CHECK((*found)[0].data<int64_t>()[i] == (i == at));
  }
}

TEST_CASE("ArgMax and ArgMin skip NaN, and give 0 if there is nothing else") {
  const Tensor first = Tensor::vector<float>({kNaN, 1, 2});
  expect_close(arg("ArgMax", first, 0), Tensor::scalar<int64_t>(2));
  expect_close(arg("ArgMin", first, 0), Tensor::scalar<int64_t>(1));
  const Tensor only = Tensor::vector<float>({kNaN, kNaN});
  expect_close(arg("ArgMax", only, 0), Tensor::scalar<int64_t>(0));
  const Tensor low = Tensor::vector<float>({-kInf, -kInf});
  expect_close(arg("ArgMax", low, 0), Tensor::scalar<int64_t>(0));
}

TEST_CASE("ArgMax and ArgMin give 0 for NaN before the worst value") {
  for (const Shape& shape : {Shape{2}, Shape{2, 1, 1}, Shape{1, 2}}) {
    const int32_t axis = shape.dim(0) == 2 ? 0 : 1;
    const auto pair = [&](float a, float b) {
      return Tensor::vector<float>({a, b}).reshaped(shape).value();
    };
    for (const char* op : {"ArgMax", "ArgMin"}) {
      CAPTURE(op);
      const float worst = op == std::string_view("ArgMax") ? -kInf : kInf;
      const auto found = arg(op, pair(kNaN, worst), axis);
      REQUIRE(found.ok());
      CHECK((*found)[0].data<int64_t>()[0] == 0);
    }
  }
  // As columns.
  expect_close(arg("ArgMax", Tensor::of<float>({2, 2}, {kNaN, 1, -kInf, 2}), 0),
               Tensor::vector<int64_t>({0, 1}));
}

TEST_CASE("ArgMax searches many columns of several blocks") {
  Tensor in = Tensor::make(DataType::kInt32, {3, 50, 700});
  int32_t* values = in.mutable_data<int32_t>();
  for (int64_t i = 0; i < in.num_elements(); ++i)
    values[i] = int32_t(i * 7919 % 10007);
  const auto found = arg("ArgMax", in, 1);
  REQUIRE(found.ok());
  for (int64_t block = 0; block < 3; ++block)
    for (int64_t column = 0; column < 700; ++column) {
      const auto at = [&](int64_t row) {
        return values[(block * 50 + row) * 700 + column];
      };
      int64_t best = 0;
      for (int64_t row = 1; row < 50; ++row)
        if (at(row) > at(best)) best = row;
      CHECK((*found)[0].data<int64_t>()[block * 700 + column] == best);
    }
}

TEST_CASE("ArgMax gives positions of the type that is asked for") {
  const Tensor in = Tensor::vector<bool>({false, true});
  expect_close(run_op("ArgMax", {in, Tensor::scalar<int64_t>(0)},
                      {{"output_type", DataType::kInt32}}),
               Tensor::scalar<int32_t>(1));
  expect_close(run_op("ArgMax", {in, Tensor::scalar<int16_t>(0)},
                      {{"output_type", DataType::kUInt16}}),
               Tensor::scalar<uint16_t>(1));
  // Of several blocks of several columns, too.
  const Tensor blocks = Tensor::of<float>({2, 3, 2}, {1, 9, 2, 8, 3, 7,  //
                                                      6, 0, 5, 1, 4, 2});
  expect_close(run_op("ArgMax", {blocks, Tensor::scalar<int32_t>(1)},
                      {{"output_type", DataType::kInt32}}),
               Tensor::of<int32_t>({2, 2}, {2, 0, 0, 2}));
  expect_close(run_op("ArgMin", {blocks, Tensor::scalar<int32_t>(2)},
                      {{"output_type", DataType::kInt32}}),
               Tensor::of<int32_t>({2, 3}, {0, 0, 0, 1, 1, 1}));
  Tensor large = Tensor::make(DataType::kInt8, {40000});
  std::fill_n(large.mutable_data<int8_t>(), 40000, int8_t(0));
  expect_error(run_op("ArgMax", {large, Tensor::scalar<int32_t>(0)},
                      {{"output_type", DataType::kInt16}}),
               Code::kInvalidArgument, "does not fit in int16");
}

TEST_CASE("ArgMax and ArgMin refuse an empty or missing dimension") {
  const Tensor empty = Tensor::make(DataType::kFloat, {0, 3});
  expect_error(arg("ArgMax", empty, 0), Code::kInvalidArgument, "is empty");
  expect_close(arg("ArgMax", empty, 1), Tensor::make(DataType::kInt64, {0}));
  expect_error(arg("ArgMin", empty, 2), Code::kInvalidArgument, "dimension 2");
  expect_error(arg("ArgMin", Tensor::scalar(1.0f), 0), Code::kInvalidArgument,
               "dimension 0");
  expect_error(run_op("ArgMax", {empty, Tensor::vector<int32_t>({0})}),
               Code::kInvalidArgument, "not a scalar");
}

TEST_CASE("a running log-sum-exp neither overflows nor loses infinities") {
  const auto scan = [](const Tensor& in, AttrMap attrs = {}) {
    return run_op("CumulativeLogsumexp", {in, Tensor::scalar<int32_t>(0)},
                  std::move(attrs));
  };
  const Tensor in = Tensor::vector<float>({1, 2, 3});
  expect_close(scan(in), Tensor::vector<float>({1, 2.3132617f, 3.4076061f}));
  expect_close(scan(in, {{"exclusive", true}}),
               Tensor::vector<float>({-kInf, 1, 2.3132617f}));
  expect_close(scan(in, {{"exclusive", true}, {"reverse", true}}),
               Tensor::vector<float>({3.3132617f, 3, -kInf}));
  expect_close(scan(Tensor::vector<float>({-kInf, 2, kInf, 1, kNaN})),
               Tensor::vector<float>({-kInf, 2, kInf, kInf, kNaN}));
  expect_close(scan(Tensor::vector<float>({1000, 1000})),
               Tensor::vector<float>({1000, 1000 + std::log(2.0f)}));
  expect_close(
      run_op("CumulativeLogsumexp", {Tensor::of<double>({2, 2}, {1, 2, 3, 4}),
                                     Tensor::scalar<int32_t>(-1)}),
      Tensor::of<double>({2, 2}, {1, 2.313261687518223, 3, 4.313261687518223}));
}

TEST_CASE("a running log-sum-exp along no dimension is refused") {
  const Tensor in = Tensor::vector<float>({1, 2});
  expect_error(run_op("CumulativeLogsumexp", {in, Tensor::scalar<int32_t>(1)}),
               Code::kInvalidArgument, "axis 1");
  expect_error(
      run_op("CumulativeLogsumexp", {in, Tensor::vector<int32_t>({0})}),
      Code::kInvalidArgument, "not a scalar");
  expect_error(run_op("CumulativeLogsumexp",
                      {Tensor::scalar(1.0f), Tensor::scalar<int32_t>(0)}),
               Code::kInvalidArgument, "axis 0");
}

}  // namespace
}  // namespace tagflow::devices
