// Packed weights, and products by them, against plain ones.
#include <doctest/doctest.h>

#include <limits>

#include "graph/handle.h"
#include "tests/devices/kernels/product/fixture.h"

namespace tagflow::devices {

using namespace layers;

TEST_CASE("packed weights give the same products as plain ones") {
  std::mt19937 random(32);
  for (const int64_t columns : {21, 96, 512})
    for (const bool transposed : {false, true})
      for (const int64_t rows : {0, 1, 3, 7, 8, 31, 64, 128, 130, 300}) {
        INFO(rows, ", ", columns, ", ", transposed);
        Layer layer;
        layer.op = "MatMul";
        layer.attrs = {{"transpose_b", transposed}};
        layer.weights = some_weights(
            random, transposed ? Shape{columns, 400} : Shape{400, columns});
        const Tensor x = numbers(random, {rows, 400});
        const auto bits = expect_same_bits(with_packed(layer), x);
        if (rows == 0) continue;
        expect_identical(bits, expect_same_bits(layer, x));
        add_rest(random, layer, x);
        expect_same_bits(with_packed(layer), x);
      }
}

TEST_CASE("rows of transposed weights are packed alone") {
  std::mt19937 random(33);
  const Tensor weights = numbers(random, {600, 320});
  struct Rows {
    int64_t first, count;
  };
  for (const auto [first, count] :
       {Rows{0, 600}, Rows{0, 1}, Rows{599, 1}, Rows{17, 33}, Rows{88, 512}})
    for (const int64_t rows : {1, 7, 8, 130}) {
      INFO(first, ", ", count, ", ", rows);
      Layer layer;
      layer.op = "MatMul";
      layer.attrs = {{"transpose_b", true}};
      const auto begin = int32_t(first), size = int32_t(count);
      layer.weights =
          run_op("Slice", {weights, Tensor::vector<int32_t>({begin, 0}),
                           Tensor::vector<int32_t>({size, 320})})
              ->front();
      layer.packed = packed_of(
          weights, {{"transposed", true}, {"first", first}, {"count", count}});
      layer.packed_shape = {count, 320};
      Tensor x = numbers(random, {rows, 320});
      for (float& value : x.mutable_flat<float>()) value /= 20;
      // A single column is not packed.
      if (count == 1)
        expect_same(layer, x);
      else
        expect_same_bits(layer, x);
    }
}

TEST_CASE("packed weights may have another shape than was said") {
  std::mt19937 random(34);
  for (const int64_t rows : {3, 8, 130}) {
    CAPTURE(rows);
    const Tensor x = numbers(random, {rows, 80});
    Layer layer;
    layer.op = "MatMul";
    layer.weights = some_weights(random, {80, 80});
    for (const PartialShape& said :
         {PartialShape{80, 60}, PartialShape{60, 80}, PartialShape{80, 100},
          PartialShape{80}, PartialShape{0, 80}, PartialShape{80, -1},
          PartialShape()}) {
      INFO(said.to_string());
      layer.packed = packed_of(layer.weights);
      layer.packed_shape = said;
      expect_same(layer, x);
      // Packed as if it was the other way.
      layer.packed = packed_of(layer.weights, {{"transposed", true}});
      layer.packed_shape = {80, 80};
      expect_same(layer, x);
    }
    // Where gates see it.
    layer.weights = some_weights(random, {80, 20});
    layer.bias = numbers(random, {20});
    add_cell(layer, 5);
    layer.others = {numbers(random, {rows, 5})};
    layer.packed = packed_of(layer.weights);
    layer.packed_shape = {80, 24};
    expect_same(layer, x);
    layer.packed_shape = {80, 20};
    expect_same(layer, x);
  }
}

TEST_CASE("a packed product refuses an input that is not a packed matrix") {
  std::mt19937 random(35);
  const Tensor weights = some_weights(random, {80, 20});
  const Tensor x = numbers(random, {8, 80});
  Layer layer;
  layer.op = "MatMul";
  layer.weights = weights;
  layer.packed_shape = {80, 20};
  const auto fails = [&](const Tensor& packed, std::string_view text) {
    layer.packed = packed;
    const auto made = make(layer);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    expect_error(run(*made, x), Code::kInvalidArgument, text);
  };
  fails(Tensor::make(DataType::kVariant, {}),
        "[_PackedMatMul] input 1 must be one packed matrix, not an empty "
        "variant");
  fails(Tensor::make(DataType::kVariant, {2}),
        "input 1 must be one packed matrix, a variant scalar, not variant[2]");
  const auto list =
      run_op("EmptyTensorList", {Tensor::scalar(-1), Tensor::scalar(-1)},
             {{"element_dtype", DataType::kFloat}});
  REQUIRE(list.ok());
  fails(list->front(), "input 1 must be one packed matrix, not TensorList[0]");
  // What no product takes is packed, and refused there.
  fails(packed_of(numbers(random, {20})), "in \"product\"");
  fails(packed_of(numbers(random, {60, 20})), "in \"product\"");
}

TEST_CASE("weights are packed as they are, or rows that they have") {
  std::mt19937 random(36);
  const auto fails = [&](const Shape& shape, bool transposed, int64_t first,
                         int64_t count, std::string_view text) {
    expect_error(
        run_op(
            "_PackWeights", {numbers(random, shape)},
            {{"transposed", transposed}, {"first", first}, {"count", count}}),
        Code::kInvalidArgument, text);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  fails({4, 6}, true, 2, 3,
        "[_PackWeights] float[4,6] has no 3 rows of outputs from 2 on");
  fails({4, 6}, true, 5, 1, "has no 1 rows of outputs from 5 on");
  fails({4, 6}, true, 4, 1, "has no 1 rows of outputs from 4 on");
  fails({4, 6}, true, kMost, kMost, "rows of outputs");
  fails({4, 6}, true, 1, kMost, "rows of outputs");
  fails({4, 6}, false, 0, 4, "float[4,6] has no 4 rows of outputs");
  fails({4}, true, 0, 4, "float[4] has no 4 rows of outputs");
  const auto text = [&](const Shape& shape, AttrMap attrs = {}) {
    const Tensor packed = packed_of(numbers(random, shape), std::move(attrs));
    return packed.data<Variant>()->get()->describe();
  };
  CHECK(text({4, 6}) == "PackedWeights of float[4,6]");
  CHECK(text({4}) == "PackedWeights of float[4]");
  CHECK(text({4, 6}, {{"transposed", true},
                      {"first", int64_t{1}},
                      {"count", int64_t{3}}}) == "PackedWeights of float[3,6]");
  // A sum of nothing is 0.
  Layer layer;
  layer.op = "MatMul";
  layer.weights = numbers(random, {0, 6});
  expect_same(with_packed(layer), numbers(random, {9, 0}));
}

TEST_CASE("a packed product's kernel serves many packed weights") {
  std::mt19937 random(37);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {640, 400});
  add_cell(layer, 100);
  layer.others = {numbers(random, {64, 100})};
  auto made = make(with_packed(layer));
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  for (int i = 0; i < 4; ++i) {
    layer.weights = some_weights(random, {640, 400});
    made->inputs[0] = packed_of(layer.weights);
    const Tensor x = numbers(random, {64, 640});
    const auto actual = run(*made, x);
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    expect_close(*actual, run_apart(layer, x)->front(), kTolerance);
  }
}

}  // namespace tagflow::devices
