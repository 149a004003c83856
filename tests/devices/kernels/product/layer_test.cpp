// Layers against the ops that they are made of.
#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernels/product/fixture.h"

namespace tagflow::devices {

using namespace layers;

namespace {

AttrMap window(Ints strides, const std::string& padding, Ints dilations,
               Ints paddings = {}) {
  AttrMap attrs = {{"strides", Ints{1, strides[0], strides[1], 1}},
                   {"padding", padding},
                   {"dilations", Ints{1, dilations[0], dilations[1], 1}}};
  if (!paddings.empty())
    attrs.insert_or_assign(
        "explicit_paddings",
        Ints{0, 0, paddings[0], paddings[1], paddings[2], paddings[3], 0, 0});
  return attrs;
}

}  // namespace

TEST_CASE("random convolutions are what their ops make one by one") {
  std::mt19937 random(17);
  for (int i = 0; i < 150; ++i) {
    CAPTURE(i);
    Layer layer;
    const int channels = 1 + below(random, 20);
    const int height = 1 + below(random, 3), width = 1 + below(random, 4);
    const Ints strides = {1 + below(random, 3), 1 + below(random, 3)};
    const Ints dilations = {1 + below(random, 2), 1 + below(random, 2)};
    const int in_height = 9 + below(random, 12);
    const int in_width = 9 + below(random, 12);
    const char* paddings[] = {"SAME", "VALID", "EXPLICIT"};
    const std::string padding = paddings[below(random, 3)];
    Ints sizes;
    if (padding == "EXPLICIT")
      for (int k = 0; k < 4; ++k) sizes.push_back(below(random, 4));
    const bool depthwise = below(random, 3) == 0;
    layer.op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    // A depthwise kernel strides alike both ways.
    layer.attrs = window(depthwise ? Ints{strides[0], strides[0]} : strides,
                         padding, dilations, sizes);
    // Some with groups.
    const int groups = !depthwise && below(random, 5) == 0 ? 2 : 1;
    const int outputs =
        depthwise ? 1 + below(random, 2) : groups * (1 + below(random, 20));
    layer.weights = some_weights(random, {height, width, channels, outputs});
    const Tensor x = numbers(
        random, {1 + below(random, 4), in_height, in_width, channels * groups});
    add_rest(random, layer, x);
    expect_same(layer, x);
  }
}

TEST_CASE("convolutions that are cut into many parts are whole again") {
  std::mt19937 random(18);
  // Images, rows, and positions, of so much work that they are cut.
  for (const Ints& sizes :
       {Ints{40, 14, 14, 32, 3, 32, 1}, Ints{1, 61, 57, 32, 3, 64, 1},
        Ints{3, 57, 60, 24, 3, 64, 2}, Ints{1, 60, 60, 64, 1, 128, 1},
        Ints{2, 57, 57, 64, 1, 128, 2}, Ints{1, 33, 30, 64, 5, 32, 2}}) {
    for (const char* padding : {"SAME", "VALID"}) {
      CAPTURE(sizes[0]);
      CAPTURE(sizes[1]);
      Layer layer;
      layer.op = "Conv2D";
      layer.attrs = window({sizes[6], sizes[6]}, padding, {1, 1});
      layer.weights =
          some_weights(random, {sizes[4], sizes[4], sizes[3], sizes[5]});
      const Tensor x =
          numbers(random, {sizes[0], sizes[1], sizes[2], sizes[3]});
      layer.bias = numbers(random, {sizes[5]});
      add_rest(random, layer, x);
      expect_same(layer, x);
    }
  }
  Layer layer;
  layer.op = "DepthwiseConv2dNative";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 64, 1});
  layer.program = {"Relu6 0"};
  expect_same(layer, numbers(random, {1, 112, 112, 64}));
}

TEST_CASE("matrix products of any number of rows are layers") {
  std::mt19937 random(19);
  for (const int rows : {1, 7, 8, 33, 400})
    for (const bool transposed : {false, true}) {
      CAPTURE(rows);
      Layer layer;
      layer.op = "MatMul";
      layer.attrs = {{"transpose_b", transposed}};
      layer.weights =
          some_weights(random, transposed ? Shape{96, 70} : Shape{70, 96});
      const Tensor x = numbers(random, {rows, 70});
      add_rest(random, layer, x);
      expect_same(layer, x);
      layer = Layer();
      layer.op = "BatchMatMulV2";
      layer.attrs = {{"adj_y", transposed}};
      layer.weights =
          some_weights(random, transposed ? Shape{96, 70} : Shape{70, 96});
      const Tensor stack = numbers(random, {2, rows, 3, 70});
      add_rest(random, layer, stack);
      expect_same(layer, stack);
    }
}

TEST_CASE("a layer of few rows splits many weights by columns") {
  std::mt19937 random(21);
  for (const int rows : {8, 33, 128, 129})
    for (const bool transposed : {false, true}) {
      CAPTURE(rows);
      CAPTURE(transposed);
      Layer layer;
      layer.op = "MatMul";
      layer.attrs = {{"transpose_b", transposed}};
      // Three parts of 64 columns, and one of 8.
      layer.weights = some_weights(
          random, transposed ? Shape{200, 1024} : Shape{1024, 200});
      const Tensor x = numbers(random, {rows, 1024});
      expect_same_bits(layer, x);
      add_rest(random, layer, x);
      expect_same_bits(layer, x);
    }
}

TEST_CASE("gates see segments of a product, of any number of rows") {
  std::mt19937 random(26);
  struct Sizes {
    int64_t inputs, width;
  };
  // Few weights, and more than stay in a cache; units that are cut evenly and
  // such that are not.
  for (const auto [inputs, width] :
       {Sizes{33, 5}, Sizes{100, 20}, Sizes{640, 100}, Sizes{156, 128},
        Sizes{640, 512}}) {
    const Tensor weights = some_weights(random, {inputs, 4 * width});
    const Tensor other_way =
        run_op("Transpose", {weights, Tensor::vector<int32_t>({1, 0})})
            ->front();
    int turn = 0;
    for (const int64_t rows : {1, 3, 7, 8, 31, 64, 128, 130, 300}) {
      CAPTURE(rows);
      CAPTURE(inputs);
      CAPTURE(width);
      const Tensor x = numbers(random, {rows, inputs});
      for (const bool has_bias : {false, true}) {
        CAPTURE(has_bias);
        Layer layer;
        layer.op = "MatMul";
        const bool transposed = ++turn % 3 == 0;
        layer.attrs = {{"transpose_b", transposed}};
        layer.weights = transposed ? other_way : weights;
        add_cell(layer, width);
        if (has_bias) layer.bias = numbers(random, {4 * width});
        // Of the results' shape, or a single element.
        layer.others = {numbers(random, {rows, width})};
        const Outputs made = expect_same_bits(layer, x);
        // Packed weights give the same bits as constant ones.
        const Outputs packed = expect_same_bits(with_packed(layer), x);
        expect_identical(packed, made);
        layer.others = {Tensor::scalar(0.5f)};
        layer.outputs = {};
        expect_same_bits(layer, x);
      }
    }
  }
}

TEST_CASE("a layer broadcasts operands of its gates") {
  std::mt19937 random(27);
  for (const int64_t rows : {3, 8, 130})
    for (const int64_t width : {5, 100})
      for (const Shape& other : {Shape{width}, Shape{rows, 1}, Shape{1, 1},
                                 Shape{2, rows, width}, Shape{1, 1, 1}}) {
        INFO(rows, ", ", width, ", ", other.to_string());
        Layer layer;
        layer.op = "MatMul";
        layer.weights = some_weights(random, {640, 4 * width});
        layer.bias = numbers(random, {4 * width});
        add_cell(layer, width);
        layer.others = {numbers(random, other)};
        const Tensor x = numbers(random, {rows, 640});
        expect_same(layer, x);
        expect_same(with_packed(layer), x);
      }
}

TEST_CASE("a layer of stacked matrices has segments, too") {
  std::mt19937 random(28);
  for (const int64_t rows : {1, 7, 40, 130})
    for (const int64_t width : {5, 100}) {
      CAPTURE(rows);
      CAPTURE(width);
      Layer layer;
      layer.op = "BatchMatMulV2";
      const bool transposed = rows > 7;
      layer.attrs = {{"adj_y", transposed}};
      layer.weights = some_weights(
          random, transposed ? Shape{4 * width, 640} : Shape{640, 4 * width});
      add_cell(layer, width);
      layer.others = {numbers(random, {2, rows, width})};
      const Tensor x = numbers(random, {2, rows, 640});
      expect_same(layer, x);
      layer.bias = numbers(random, {4 * width});
      expect_same(layer, x);
      layer.others = {numbers(random, {width})};
      expect_same(layer, x);
    }
}

TEST_CASE("a layer without segments may have several outputs") {
  std::mt19937 random(29);
  for (const int64_t rows : {1, 7, 8, 128, 300})
    for (const int64_t columns : {21, 300}) {
      CAPTURE(rows);
      CAPTURE(columns);
      Layer layer;
      layer.op = "MatMul";
      layer.weights = some_weights(random, {640, columns});
      layer.program = {"Tanh 0", "Mul 2 1", "Sub 3 0"};
      layer.others = {numbers(random, {rows, columns})};
      const Tensor x = numbers(random, {rows, 640});
      for (const Ints& outputs : {Ints{2, 4}, Ints{4, 3, 2}, Ints{3}}) {
        layer.outputs = outputs;
        expect_same_bits(layer, x);
      }
      layer.bias = numbers(random, {columns});
      expect_same_bits(layer, x);
      layer.others = {Tensor::scalar(2.0f)};
      expect_same_bits(layer, x);
      expect_same_bits(with_packed(layer), x);
    }
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.program = {"Sigmoid 0", "Mul 0 1"};
  layer.outputs = {2, 1};
  expect_same(layer, numbers(random, {2, 9, 9, 4}));
  // Segments of a convolution's channels.
  layer.segments = 2;
  layer.width = 8;
  layer.program = {"Sigmoid 0", "Mul 2 1"};
  layer.outputs = {3, 2};
  expect_same(layer, numbers(random, {2, 9, 9, 4}));
}

TEST_CASE("layers of no floats or of no constants have segments, too") {
  std::mt19937 random(30);
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16}) {
    INFO(dtype_name(dtype));
    const auto cast = [&](const Tensor& tensor) {
      return run_op("Cast", {tensor}, {{"DstT", dtype}})->front();
    };
    for (const int64_t rows : {3, 31}) {
      Layer layer;
      layer.op = "MatMul";
      layer.weights = cast(some_weights(random, {33, 20}));
      layer.bias = cast(numbers(random, {20}));
      layer.is_constant = dtype != DataType::kFloat;
      add_cell(layer, 5);
      layer.others = {cast(numbers(random, {rows, 5}))};
      expect_same(layer, cast(numbers(random, {rows, 33})), 0);
    }
  }
}

TEST_CASE("a product takes the parts of a ConcatV2 as if they were one") {
  std::mt19937 random(34);
  for (const Ints& widths :
       {Ints{28, 128}, Ints{1, 1}, Ints{17, 3, 40}, Ints(16, 5), Ints(17, 5)}) {
    int64_t inputs = 0;
    for (const int64_t width : widths) inputs += width;
    for (const int64_t rows : {1, 3, 8, 14, 130}) {
      INFO(rows, ", ", inputs, ", ", widths.size());
      std::vector<Tensor> parts;
      for (const int64_t width : widths)
        parts.push_back(numbers(random, {rows, width}));
      Layer layer;
      layer.op = "MatMul";
      layer.weights = some_weights(random, {inputs, 80});
      layer.more.assign(parts.begin() + 1, parts.end());
      const auto expect_all = [&] {
        if (widths.size() > 16) {  // more than a product takes: one by one
          expect_same(layer, parts[0]);
          expect_same(with_packed(layer), parts[0]);
          return;
        }
        const Outputs made = expect_same_bits(layer, parts[0]);
        expect_identical(expect_same_bits(with_packed(layer), parts[0]), made);
        // As if nothing had been joined, bit by bit.
        Layer whole = layer;
        whole.more.clear();
        std::vector<Tensor> operands = parts;
        operands.push_back(Tensor::scalar(1));
        const Tensor x = run_op("ConcatV2", operands)->front();
        expect_identical(expect_same_bits(whole, x), made);
      };
      expect_all();
      layer.bias = numbers(random, {80});
      layer.program = {"Tanh 0"};
      expect_all();
      add_cell(layer, 20);
      layer.others = {numbers(random, {rows, 20})};
      expect_all();
      layer.attrs = {{"transpose_b", true}};
      layer.weights = some_weights(random, {80, inputs});
      expect_all();
      layer.is_constant = false;
      expect_same(layer, parts[0]);
    }
  }
}

TEST_CASE("layers may be of few columns") {
  std::mt19937 random(36);
  for (const int64_t columns : {1, 2, 7, 8, 15, 16, 17, 33})
    for (const int64_t rows : {1, 13, 64, 300}) {
      INFO(rows, ", ", columns);
      Layer layer;
      layer.op = "MatMul";
      layer.weights = some_weights(random, {900, columns});
      const Tensor x = numbers(random, {rows, 900});
      add_rest(random, layer, x);
      expect_same(layer, x);
      expect_same(with_packed(layer), x);
    }
}

TEST_CASE("a bias that does not fit is the error of its op") {
  std::mt19937 random(37);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {40, 40});
  const Tensor x = numbers(random, {9, 40});
  for (const Shape& shape : {Shape{39}, Shape{41}, Shape{1, 40}, Shape{}})
    for (const bool has_segments : {false, true}) {
      INFO(shape.to_string(), ", ", has_segments);
      layer.bias = numbers(random, shape);
      if (has_segments) add_cell(layer, 10);
      layer.others.assign(has_segments ? 1 : 0, numbers(random, {9, 10}));
      for (const Layer& one : {layer, with_packed(layer)}) {
        const auto made = make(one);
        REQUIRE_MESSAGE(made.ok(), made.status().to_string());
        expect_error(run(*made, x), Code::kInvalidArgument, "in \"bias\"");
      }
      layer.segments = 1;
      layer.program = {};
      layer.outputs = {};
    }
}

TEST_CASE("a convolution of one position is a product of rows") {
  std::mt19937 random(38);
  for (const int stride : {1, 2})
    for (const int64_t size : {1, 7, 30}) {
      CAPTURE(stride);
      CAPTURE(size);
      Layer layer;
      layer.op = "Conv2D";
      layer.attrs = window({stride, stride}, "SAME", {1, 1});
      layer.weights = some_weights(random, {1, 1, 48, 40});
      const Tensor x = numbers(random, {3, size, size, 48});
      layer.bias = numbers(random, {40});
      layer.program = {"Sigmoid 0", "Mul 0 1"};
      expect_same(layer, x);
      layer.outputs = {2, 1};
      expect_same(layer, x);
    }
}

TEST_CASE("a layer fails as its ConcatV2 would if parts do not fit") {
  std::mt19937 random(35);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {40, 40});
  const auto fails = [&](const Shape& x, const Shape& more,
                         std::string_view text) {
    layer.more = {numbers(random, more)};
    for (const Layer& one : {layer, with_packed(layer)}) {
      const auto made = make(one);
      REQUIRE_MESSAGE(made.ok(), made.status().to_string());
      expect_error(run(*made, numbers(random, x)), Code::kInvalidArgument,
                   text);
    }
  };
  fails({3, 20}, {4, 20}, "in \"join\"");
  fails({3, 20}, {3, 20, 1}, "in \"join\"");
  fails({20}, {20}, "in \"product\"");
  fails({3, 20}, {3, 21}, "in \"product\"");
  // Rows of nothing.
  layer.more = {numbers(random, {0, 20})};
  expect_same(layer, numbers(random, {0, 20}));
  layer.more = {numbers(random, {3, 40})};
  expect_same(layer, numbers(random, {3, 0}));
}

TEST_CASE("a layer refuses segments beyond its columns") {
  std::mt19937 random(31);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {33, 20});
  for (const int64_t rows : {3, 31}) {
    CAPTURE(rows);
    const Tensor x = numbers(random, {rows, 33});
    add_cell(layer, 6);
    layer.others = {numbers(random, {rows, 6})};
    auto made = make(layer);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    expect_error(run(*made, x), Code::kInvalidArgument,
                 "input 3 has no columns 18 to 23: it is float");
    // Others than these are not seen.
    add_cell(layer, 4);
    layer.others = {numbers(random, {rows, 4})};
    made = make(layer);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const auto actual = run(*made, x);
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    Layer narrow = layer;
    narrow.weights =
        run_op("Slice", {layer.weights, Tensor::vector<int32_t>({0, 0}),
                         Tensor::vector<int32_t>({33, 16})})
            ->front();
    const auto expected = run_apart(narrow, x);
    REQUIRE_MESSAGE(expected.ok(), expected.status().to_string());
    for (size_t i = 0; i < expected->size(); ++i)
      expect_close((*actual)[i], (*expected)[i], kTolerance);
  }
  for (const auto& [segments, width] :
       std::vector<std::pair<int64_t, int64_t>>{{4, 0}, {65, 1}}) {
    layer.segments = segments;
    layer.width = width;
    expect_error(make(layer), Code::kInvalidArgument,
                 fmt::format("{} segments of {} columns", segments, width));
  }
  layer.segments = 4;
  layer.width = std::numeric_limits<int64_t>::max();
  expect_error(make(layer), Code::kInvalidArgument, "columns");
}

TEST_CASE("a layer's kernel serves more shapes than it remembers") {
  std::mt19937 random(20);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 5});
  layer.program = {"Relu 0"};
  const auto made = make(layer);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  for (int again = 0; again < 2; ++again)
    for (int size = 1; size < 14; ++size) {
      const Tensor x = numbers(random, {1, size, 20 - size, 4});
      expect_close(*run(*made, x), run_apart(layer, x)->front(), kTolerance);
    }
}

TEST_CASE("a NaN goes through a layer as through its ops") {
  std::mt19937 random(21);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.bias = numbers(random, {16});
  for (const char* op : {"Relu 0", "Relu6 0", "Sigmoid 0"}) {
    layer.program = {op};
    Tensor x = numbers(random, {1, 9, 9, 4});
    x.mutable_data<float>()[100] = std::numeric_limits<float>::quiet_NaN();
    expect_same(layer, x);
  }
}

TEST_CASE("a layer takes other operands whose shape is known late") {
  std::mt19937 random(22);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.program = {"AddV2 0 1"};
  const Tensor x = numbers(random, {2, 9, 9, 4});
  for (const Shape& shape : {Shape{16}, Shape{2, 1, 1, 16}, Shape{1, 1, 1, 1},
                             Shape{3, 2, 9, 9, 16}}) {
    layer.others = {numbers(random, shape)};
    expect_same(layer, x);
  }
}

TEST_CASE("a layer's error is that of the op, and names it") {
  std::mt19937 random(23);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "VALID", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  const auto fails = [&](const Tensor& x, std::string_view text) {
    const auto made = make(layer);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    expect_error(run(*made, x), Code::kInvalidArgument, text);
  };
  fails(numbers(random, {1, 9, 4}), "[Conv2D] input 0 is float[1,9,4]");
  fails(numbers(random, {1, 9, 9, 5}), "in \"product\"");
  fails(numbers(random, {1, 1, 9, 4}), "[Conv2D] ");
  layer.bias = numbers(random, {15});
  fails(numbers(random, {1, 9, 9, 4}), "in \"bias\"");
  layer.bias = Tensor();
  layer.program = {"AddV2 0 1"};
  layer.others = {numbers(random, {3})};
  fails(numbers(random, {1, 9, 9, 4}), "\"op0\"");
}

TEST_CASE("a layer of no rows gives an empty result") {
  std::mt19937 random(24);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.program = {"Relu 0"};
  expect_same(layer, numbers(random, {0, 9, 9, 4}));
  layer.op = "MatMul";
  layer.attrs = {};
  layer.weights = some_weights(random, {40, 40});
  expect_same(layer, numbers(random, {0, 40}));
}

TEST_CASE("a layer that does not fit together is refused") {
  std::mt19937 random(25);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {40, 40});
  layer.others = {numbers(random, {40})};
  expect_error(make(layer), Code::kInvalidArgument,
               "1 operands without a program");
  layer.program = {"Neg 2"};
  expect_error(make(layer), Code::kInvalidArgument,
               "[_FusedMatMul] node \"layer\": ");
  layer.program = {"MatMul 0 1"};
  expect_error(make(layer), Code::kInvalidArgument, "cannot be fused");
  layer.program = {"Neg 0", "Tanh 2"};
  layer.outputs = {2, 4};
  expect_error(make(layer), Code::kInvalidArgument,
               "output 1 is value 4, which is not a result, or is repeated");
  layer.outputs = {1, 2};
  expect_error(make(layer), Code::kInvalidArgument,
               "output 0 is value 1, which is not a result");
  layer.outputs = {3, 3};
  expect_error(make(layer), Code::kInvalidArgument, "or is repeated");
  layer.program = {};
  layer.others = {};
  expect_error(make(layer), Code::kInvalidArgument,
               "2 outputs without a program");
}

}  // namespace tagflow::devices
