#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Result<Outputs> strided(const Tensor& input, std::span<const int64_t> begin,
                        std::span<const int64_t> end,
                        std::span<const int64_t> strides, AttrMap attrs = {}) {
  auto vector = [](std::span<const int64_t> values) {
    return Tensor::of<int64_t>({int64_t(values.size())}, values);
  };
  return run_op("StridedSlice",
                {input, vector(begin), vector(end), vector(strides)},
                std::move(attrs));
}

const Tensor& digits() {
  static const Tensor tensor =
      Tensor::vector<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  return tensor;
}

using Values = std::vector<int64_t>;

}  // namespace

TEST_CASE("StridedSlice: bounds far outside are as good as the end") {
  expect_close(strided(digits(), Values{kMin}, Values{kMax}, Values{kMax}),
               Tensor::vector<float>({0}));
  expect_close(strided(digits(), Values{kMax}, Values{kMin}, Values{-4}),
               Tensor::vector<float>({9, 5, 1}));
  expect_close(strided(digits(), Values{kMax}, Values{kMin}, Values{kMin}),
               Tensor::vector<float>({9}));
  expect_close(strided(digits(), Values{8}, Values{3}, Values{1}),
               Tensor::make(DataType::kFloat, {0}));
}

TEST_CASE("StridedSlice: a single index of a vector must be inside") {
  for (int64_t index : {int64_t(10), int64_t(-11), kMin, kMax})
    expect_error(strided(digits(), Values{index}, Values{0}, Values{1},
                         {{"shrink_axis_mask", 1}}),
                 Code::kInvalidArgument, "outside");
  expect_close(strided(digits(), Values{-10}, Values{0}, Values{1},
                       {{"shrink_axis_mask", 1}}),
               Tensor::scalar(0.0f));
}

TEST_CASE("StridedSlice refuses wrong specs by name") {
  expect_error(strided(digits(), Values{0}, Values{1}, Values{0}),
               Code::kInvalidArgument, "strides[0] is zero");
  expect_error(strided(digits(), Values{0, 0}, Values{1, 1}, Values{1, 1}),
               Code::kInvalidArgument, "too many");
  expect_error(strided(digits(), Values{0, 0}, Values{1, 1}, Values{1, 1},
                       {{"ellipsis_mask", 3}}),
               Code::kInvalidArgument, "ellips");
  expect_error(strided(digits(), Values{0}, Values{1}, Values{1},
                       {{"end_mask", int64_t{1} << 31}}),
               Code::kInvalidArgument, "mask 2147483648 is not an int32");
  expect_error(strided(digits(), Values{0, 0}, Values{1}, Values{1}),
               Code::kInvalidArgument, "2, 1 and 1 elements");
}

TEST_CASE("a slice of everything shares the elements") {
  const auto whole = strided(digits(), Values{0}, Values{0}, Values{1},
                             {{"begin_mask", 1}, {"end_mask", 1}});
  REQUIRE(whole.ok());
  CHECK((*whole)[0].buffer() == digits().buffer());
  const auto sliced = run_op("Slice", {digits(), Tensor::vector<int32_t>({0}),
                                       Tensor::vector<int32_t>({-1})});
  REQUIRE(sliced.ok());
  CHECK((*sliced)[0].buffer() == digits().buffer());
}

TEST_CASE("slices outside are refused") {
  auto slice = [](int64_t begin, int64_t size) {
    return run_op("Slice", {digits(), Tensor::vector<int64_t>({begin}),
                            Tensor::vector<int64_t>({size})});
  };
  expect_error(slice(-1, 2), Code::kInvalidArgument, "begin[0] = -1");
  expect_error(slice(11, 0), Code::kInvalidArgument, "begin[0] = 11");
  expect_error(slice(9, 2), Code::kInvalidArgument, "size[0] = 2");
  expect_error(slice(1, kMax), Code::kInvalidArgument, "outside");
  expect_error(slice(1, -2), Code::kInvalidArgument, "size[0] = -2");
}

TEST_CASE("a slice may begin at the end, and then has nothing") {
  const Tensor table = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto slice = [&](const Tensor& begin, const Tensor& size) {
    return run_op("Slice", {table, begin, size});
  };
  const Tensor end = Tensor::vector<int32_t>({1, 3});
  for (const int32_t size : {0, -1})
    expect_close(slice(end, Tensor::vector<int32_t>({1, size})),
                 Tensor::make(DataType::kFloat, {1, 0}));
  expect_error(slice(end, Tensor::vector<int32_t>({1, 1})),
               Code::kInvalidArgument, "size[1] = 1");
  expect_error(
      slice(Tensor::vector<int32_t>({1, 4}), Tensor::vector<int32_t>({1, 0})),
      Code::kInvalidArgument, "begin[1] = 4");
}

TEST_CASE("Slice and StridedSlice take strings and large tensors") {
  expect_close(run_op("Slice", {Tensor::vector<std::string>({"a", "b", "c"}),
                                Tensor::vector<int32_t>({1}),
                                Tensor::vector<int32_t>({2})}),
               Tensor::vector<std::string>({"b", "c"}));
  Tensor large = Tensor::make(DataType::kInt64, {300, 400});
  for (int64_t i = 0; i < 120000; ++i) large.mutable_data<int64_t>()[i] = i;
  const auto columns =
      strided(large, Values{0, 399}, Values{300, 0}, Values{1, -3});
  REQUIRE_MESSAGE(columns.ok(), columns.status().to_string());
  const Tensor& output = (*columns)[0];
  CHECK(output.shape() == Shape({300, 133}));
  for (int64_t i = 0; i < output.num_elements(); ++i)
    REQUIRE(output.data<int64_t>()[i] == i / 133 * 400 + 399 - i % 133 * 3);
}

TEST_CASE("the gradient of a slice has zeros around") {
  const auto outputs = run_op(
      "StridedSliceGrad",
      {Tensor::vector<int32_t>({2, 3}), Tensor::vector<int32_t>({0, 2}),
       Tensor::vector<int32_t>({2, -4}), Tensor::vector<int32_t>({1, -2}),
       Tensor::of<float>({2, 2}, {1, 2, 3, 4})});
  expect_close(outputs, Tensor::of<float>({2, 3}, {2, 0, 1, 4, 0, 3}));
  expect_error(
      run_op("StridedSliceGrad",
             {Tensor::vector<int32_t>({4}), Tensor::vector<int32_t>({0}),
              Tensor::vector<int32_t>({2}), Tensor::vector<int32_t>({1}),
              Tensor::vector<float>({1, 2, 3})}),
      Code::kInvalidArgument, "the slice is [2]");
}

TEST_CASE("the gradient of a slice has the shape that was sliced") {
  const auto gradient = [](const Tensor& shape, const Tensor& end,
                           const Tensor& dy, AttrMap attrs) {
    const auto rank = size_t(end.dim(0));
    const std::vector<int32_t> zeros(rank, 0), ones(rank, 1);
    const Shape dims{int64_t(rank)};
    return run_op("StridedSliceGrad",
                  {shape, Tensor::of<int32_t>(dims, std::span(zeros)), end,
                   Tensor::of<int32_t>(dims, std::span(ones)), dy},
                  std::move(attrs));
  };
  // Of nothing, a part.
  expect_close(
      gradient(Tensor::vector<int32_t>({0, 5}), Tensor::vector<int32_t>({0, 3}),
               Tensor::make(DataType::kFloat, {0, 3}), {}),
      Tensor::make(DataType::kFloat, {0, 5}));
  // Of [1,3], the row and a new dimension.
  expect_close(gradient(Tensor::vector<int32_t>({1, 3}),
                        Tensor::vector<int32_t>({1, 3, 1}),
                        Tensor::of<float>({3, 1}, {1, 2, 3}),
                        {{"shrink_axis_mask", 1}, {"new_axis_mask", 4}}),
               Tensor::of<float>({1, 3}, {1, 2, 3}));
}

}  // namespace tagflow::devices
