// Ragged tensors in variants, and back.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "devices/tracking_allocator.h"
#include "graph/handle.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/sparse/sparse_inputs.h"
#include "tests/devices/one_step.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Result<Outputs> encode(std::vector<Tensor> splits, const Tensor& values,
                       bool is_batch) {
  const auto levels = int64_t(splits.size());
  splits.push_back(values);
  AttrMap attrs = {{"RAGGED_RANK", levels}, {"batched_input", is_batch}};
  if (levels == 0) attrs["Tsplits"] = DataType::kInt64;
  return run_op("RaggedTensorToVariant", splits, attrs);
}

Tensor encoded(std::vector<Tensor> splits, const Tensor& values,
               bool is_batch = true) {
  const auto made = encode(std::move(splits), values, is_batch);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  return (*made)[0];
}

Result<Outputs> decode(const Tensor& variants, int inner, int levels,
                       DataType type = DataType::kFloat) {
  return run_op("RaggedTensorFromVariant", {variants},
                {{"input_ragged_rank", inner},
                 {"output_ragged_rank", levels},
                 {"Tvalues", type}});
}

// A variant of the same elements, in another shape.
Tensor reshaped(const Tensor& variants, const Shape& shape) {
  Tensor result = Tensor::make(DataType::kVariant, shape);
  std::ranges::copy(variants.flat<Variant>(), result.mutable_data<Variant>());
  return result;
}

// Three rows: of two rows of values, of none, and of one.
Tensor three_rows() {
  return encoded({longs({0, 2, 2, 3}), longs({0, 1, 3, 4})},
                 floats({1, 2, 3, 4}));
}

}  // namespace

TEST_CASE("the rows of a ragged tensor are variants, and make it again") {
  const Tensor rows = three_rows();
  CHECK(rows.shape() == Shape{3});
  const auto whole = decode(rows, 1, 2);
  REQUIRE_MESSAGE(whole.ok(), whole.status().to_string());
  expect_close((*whole)[0], longs({0, 2, 2, 3}));
  expect_close((*whole)[1], longs({0, 1, 3, 4}));
  expect_close((*whole)[2], floats({1, 2, 3, 4}));
}

TEST_CASE("the dimensions of a variant become levels") {
  const Tensor rows = encoded({longs({0, 2, 2, 3, 4})},
                              Tensor::of<float>({4, 1}, {1, 2, 3, 4}));
  const auto square = decode(reshaped(rows, {2, 2}), 0, 2);
  REQUIRE_MESSAGE(square.ok(), square.status().to_string());
  expect_close((*square)[0], longs({0, 2, 4}));
  expect_close((*square)[1], longs({0, 2, 2, 3, 4}));
  expect_close((*square)[2], Tensor::of<float>({4, 1}, {1, 2, 3, 4}));
  // The number of levels inside is found.
  CHECK(decode(rows, -1, 1).ok());
  // Nothing at all.
  const auto none =
      decode(reshaped(encoded({longs({0})}, floats({})), {0}), 0, 1);
  REQUIRE_MESSAGE(none.ok(), none.status().to_string());
  expect_close((*none)[0], longs({0}));
  expect_close((*none)[1], floats({}));
}

TEST_CASE("a whole ragged tensor is one variant") {
  const Tensor one = encoded({longs({0, 1, 3})}, floats({1, 2, 3}), false);
  CHECK(one.is_scalar());
  const auto back = decode(one, 1, 1);
  REQUIRE_MESSAGE(back.ok(), back.status().to_string());
  expect_close((*back)[0], longs({0, 1, 3}));
  expect_close((*back)[1], floats({1, 2, 3}));
  // Of no level: any tensor.
  expect_close(decode(encoded({}, floats({7}), false), 0, 0), floats({7}));
}

TEST_CASE("variants of ragged tensors have sums and zeros") {
  const Tensor rows = three_rows();
  const auto sum = run_op("AddN", {rows, rows});
  REQUIRE_MESSAGE(sum.ok(), sum.status().to_string());
  const auto whole = decode((*sum)[0], 1, 2);
  REQUIRE_MESSAGE(whole.ok(), whole.status().to_string());
  expect_close((*whole)[2], floats({2, 4, 6, 8}));
  const auto zeros = run_op("ZerosLike", {rows});
  REQUIRE_MESSAGE(zeros.ok(), zeros.status().to_string());
  const auto empty = decode((*zeros)[0], 1, 2);
  REQUIRE_MESSAGE(empty.ok(), empty.status().to_string());
  expect_close((*empty)[2], floats({0, 0, 0, 0}));
  const Tensor other =
      encoded({longs({0, 1, 2, 3}), longs({0, 1, 3, 4})}, floats({1, 2, 3, 4}));
  expect_error(run_op("AddN", {rows, other}), kInvalid, "the rows differ");
}

TEST_CASE("the gradient of variants is that of their values") {
  const auto gradient = [](const Tensor& variants, const Tensor& splits,
                           const Tensor& shape) {
    return run_op("RaggedTensorToVariantGradient", {variants, splits, shape},
                  {{"Tvalues", DataType::kFloat}});
  };
  const Tensor splits = longs({0, 2, 2, 3});
  Tensor rows = encoded({splits}, floats({1, 2, 3}));
  const Tensor three = Tensor::vector<int32_t>({3});
  expect_close(gradient(rows, splits, three), floats({1, 2, 3}));
  // Rows without a gradient have zeros.
  rows.mutable_data<Variant>()[0] = Variant();
  expect_close(gradient(rows, splits, three), floats({0, 0, 3}));
  expect_error(gradient(rows, longs({0}), three), kInvalid,
               "element 0 has no row in int64[1]");
  expect_error(gradient(rows, splits, Tensor::vector<int32_t>({4})), kInvalid,
               "the gradients have 3 rows, the values are [4]");
  expect_error(gradient(rows, splits, Tensor::vector<int32_t>({3, 2})),
               kInvalid, "but those of values [3,2] of float are wanted");
}

TEST_CASE("rows without elements count in the memory that there is") {
  const auto memory = TrackingAllocator::make({"here", 1 << 20});
  const auto join = [&](const Shape& shape) {
    std::vector<Tensor> inputs{Tensor::make(DataType::kVariant, shape)};
    return run_unshared("RaggedTensorFromVariant", inputs,
                        {{"input_ragged_rank", 0},
                         {"output_ragged_rank", shape.rank()},
                         {"Tvalues", DataType::kFloat}},
                        *memory);
  };
  const auto three = join({3, 0});
  REQUIRE_MESSAGE(three.ok(), three.status().to_string());
  expect_close((*three)[0], longs({0, 0, 0, 0}));
  expect_close((*three)[1], longs({0}));
  expect_error(join({int64_t(1) << 33, 0}), Code::kResourceExhausted, "");
  expect_error(join({2, int64_t(1) << 62, 0}), kInvalid, "has too many rows");
  expect_error(join({int64_t(1) << 40, int64_t(1) << 40, 0}), kInvalid,
               "has too many rows");
  expect_error(join({std::numeric_limits<int64_t>::max(), 0}), kInvalid, "");
}

TEST_CASE("ragged tensors in ragged tensors are freed without recursion") {
  Tensor nested = floats({1});
  for (int depth = 0; depth < 100000; ++depth) {
    const DataType nested_type = nested.dtype();
    std::vector<Tensor> inputs{std::move(nested)};
    const auto made = run_unshared("RaggedTensorToVariant", inputs,
                                   {{"RAGGED_RANK", 0},
                                    {"Tvalues", nested_type},
                                    {"Tsplits", DataType::kInt64},
                                    {"batched_input", false}});
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    nested = (*made)[0];
  }
  nested.reset();
}

TEST_CASE("what makes no ragged tensor is refused") {
  expect_error(encode({}, floats({1}), true), kInvalid,
               "a batch needs row splits");
  expect_error(encode({longs({0, 2})}, floats({1}), true), kInvalid,
               "the last row ends at 2, but the values are float[1]");
  expect_error(
      encode({longs({0, 2, 1})}, floats({1}), true), kInvalid,
      "row splits of level 0 must begin with 0 and ascend, but element "
      "2 is 1");
  expect_error(encode({longs({0, 2}), longs({0, 1})}, floats({1}), true),
               kInvalid, "level 1 has 1 rows, but level 0 ends at 2");
  const Tensor rows = three_rows();
  expect_error(decode(rows, 1, 3), kInvalid, "make no tensor of 3 levels");
  expect_error(decode(rows, 0, 1), kInvalid, "not one of 0 levels");
  expect_error(decode(rows, 1, 2, DataType::kInt32), kInvalid,
               "not one of int32");
  expect_error(decode(Tensor::make(DataType::kVariant, {1}), 0, 1), kInvalid,
               "element 0 is an empty variant, not a RaggedTensor");
}

}  // namespace tagflow::devices
