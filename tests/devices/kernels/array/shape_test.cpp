#include <doctest/doctest.h>

#include <algorithm>

#include "graph/handle.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.mutable_data<float>()[i] = float(i);
  return tensor;
}

}  // namespace

TEST_CASE("reshapes share the elements of their input") {
  const Tensor input = counted({4, 6});
  const auto outputs =
      run_op("Reshape", {input, Tensor::vector<int32_t>({2, -1})});
  REQUIRE(outputs.ok());
  CHECK((*outputs)[0].shape() == Shape({2, 12}));
  CHECK((*outputs)[0].buffer() == input.buffer());
  const auto expanded = run_op("ExpandDims", {input, Tensor::scalar(-1)});
  REQUIRE(expanded.ok());
  CHECK((*expanded)[0].shape() == Shape({4, 6, 1}));
  CHECK((*expanded)[0].buffer() == input.buffer());
  const auto squeezed = run_op("Squeeze", {(*expanded)[0]});
  REQUIRE(squeezed.ok());
  CHECK((*squeezed)[0].buffer() == input.buffer());
}

TEST_CASE("Reshape refuses a wrong shape and says what is wrong") {
  const Tensor input = counted({2, 3});
  expect_error(run_op("Reshape", {input, Tensor::vector<int32_t>({-1, -1})}),
               Code::kInvalidArgument, "several dimensions of -1");
  expect_error(run_op("Reshape", {input, Tensor::vector<int32_t>({-2, 3})}),
               Code::kInvalidArgument, "negative");
  expect_error(run_op("Reshape", {input, Tensor::vector<int32_t>({4, -1})}),
               Code::kInvalidArgument, "6 is not a multiple of 4");
  expect_error(run_op("Reshape", {input, Tensor::vector<int32_t>({7})}),
               Code::kInvalidArgument, "6 elements");
  expect_error(run_op("Reshape", {input, Tensor::of<int32_t>({1, 1}, {6})}),
               Code::kInvalidArgument, "vector");
}

TEST_CASE("Reshape takes a scalar as shape if its own is known late") {
  const Tensor input = counted({2, 3});
  for (const int size : {6, -1}) {
    const auto flat =
        run_op_beyond_inference("Reshape", {input, Tensor::scalar(size)});
    REQUIRE_MESSAGE(flat.ok(), flat.status().to_string());
    CHECK((*flat)[0].shape() == Shape({6}));
  }
  expect_error(run_op("Reshape", {input, Tensor::scalar(5)}),
               Code::kInvalidArgument, "6 elements");
}

TEST_CASE("Reshape finds the open dimension of an empty tensor") {
  const auto reshaped = [](const Shape& from, std::initializer_list<int> to) {
    const auto outputs = run_op(
        "Reshape",
        {Tensor::make(DataType::kFloat, from), Tensor::vector<int32_t>(to)});
    REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
    return (*outputs)[0].shape();
  };
  CHECK(reshaped({0}, {-1}) == Shape{0});
  CHECK(reshaped({3, 0}, {-1, 3}) == Shape{0, 3});
  CHECK(reshaped({0, 6}, {0, -1, 2}) == Shape{0, 3, 2});
}

TEST_CASE("Reshape refuses shapes of too many elements") {
  const int64_t big = int64_t(1) << 40;
  const Tensor empty = Tensor::make(DataType::kFloat, {0});
  expect_error(run_op("Reshape", {empty, Tensor::vector<int64_t>({big, big})}),
               Code::kInvalidArgument, "");
  expect_error(
      run_op("Reshape", {empty, Tensor::vector<int64_t>({big, big, -1})}),
      Code::kInvalidArgument, "too many");
  // With a dimension of 0 they are just empty.
  const auto outputs =
      run_op("Reshape", {empty, Tensor::vector<int64_t>({big, 0, big})});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  CHECK((*outputs)[0].num_elements() == 0);
}

TEST_CASE("a reshape makes one dimension less than there may be") {
  const auto reshaped = [](int rank) {
    Tensor dims = Tensor::make(DataType::kInt32, {rank});
    std::ranges::fill(dims.mutable_flat<int32_t>(), 1);
    return run_op("Reshape", {Tensor::vector<float>({7}), dims});
  };
  expect_error(reshaped(kMaxRank), Code::kInvalidArgument,
               "254 dimensions are wanted, there may be 253");
  const auto most = reshaped(kMaxRank - 1);
  REQUIRE_MESSAGE(most.ok(), most.status().to_string());
  CHECK((*most)[0].rank() == 253);
}

TEST_CASE("ExpandDims refuses a rank over the limit") {
  Shape shape;
  for (int i = 0; i < kMaxRank; ++i) shape.add_dim(1);
  expect_error(run_op("ExpandDims", {Tensor::make(DataType::kInt32, shape),
                                     Tensor::scalar(0)}),
               Code::kInvalidArgument, "rank");
}

TEST_CASE("Shape, Size and Reshape take tensors of handles") {
  const Tensor handles = Tensor::make(DataType::kResource, {2, 3});
  expect_close(run_op("Shape", {handles}), Tensor::vector<int32_t>({2, 3}));
  expect_close(run_op("Size", {handles}), Tensor::scalar(6));
  const auto row = run_op("Reshape", {handles, Tensor::vector<int32_t>({-1})});
  REQUIRE(row.ok());
  CHECK((*row)[0].shape() == Shape({6}));
}

TEST_CASE("Shape refuses a dimension that its int32 cannot hold") {
  const Tensor wide = Tensor::make(DataType::kFloat, {int64_t(1) << 31, 0});
  expect_error(run_op("Shape", {wide}), Code::kInvalidArgument, "int32");
  expect_close(run_op("Shape", {wide}, {{"out_type", DataType::kInt64}}),
               Tensor::vector<int64_t>({int64_t(1) << 31, 0}));
}

}  // namespace tagflow::devices
