// Max and average pools and their gradients; values are TensorFlow's.
#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using Ints = std::vector<int64_t>;

AttrMap windows(Ints size, Ints stride, const char* padding = "VALID") {
  return {{"ksize", std::move(size)},
          {"strides", std::move(stride)},
          {"padding", padding}};
}

// Three rows and columns with ties.
const Tensor kImage =
    Tensor::of<float>({1, 3, 3, 1}, {1, 1, 2, 2, 2, 2, 0, 1, 3});
const AttrMap kTwoByTwo = windows({1, 2, 2, 1}, {1, 1, 1, 1});

Tensor square(std::initializer_list<float> values) {
  return Tensor::of<float>({1, 2, 2, 1}, values);
}

TEST_CASE("a max pool takes the largest element of each window") {
  expect_close(run_op("MaxPool", {kImage}, kTwoByTwo), square({2, 2, 2, 3}));
  expect_close(
      run_op("MaxPool", {kImage}, windows({1, 2, 2, 1}, {1, 2, 2, 1}, "SAME")),
      square({2, 2, 1, 3}));
  expect_close(
      run_op("MaxPool",
             {Tensor::of<int8_t>({1, 1, 3, 2}, {1, -9, -2, -8, 5, -7})},
             windows({1, 1, 2, 1}, {1, 1, 1, 1})),
      Tensor::of<int8_t>({1, 1, 2, 2}, {1, -8, 5, -7}));
}

TEST_CASE("MaxPool: explicit padding is never the maximum") {
  AttrMap attrs = windows({1, 2, 2, 1}, {1, 1, 1, 1}, "EXPLICIT");
  attrs["explicit_paddings"] = Ints{0, 0, 1, 1, 1, 0, 0, 0};
  const Tensor negative = Tensor::of<float>({1, 2, 2, 1}, {-1, -2, -3, -4});
  expect_close(run_op("MaxPool", {negative}, attrs),
               Tensor::of<float>({1, 3, 2, 1}, {-1, -1, -1, -1, -3, -3}));
  attrs["ksize"] = Ints{1, 1, 1, 1};
  expect_error(run_op("MaxPool", {negative}, attrs), Code::kInvalidArgument,
               "not below the window");
}

TEST_CASE("MaxPoolV2 takes sizes and strides as inputs") {
  const auto run = [](std::initializer_list<int32_t> size,
                      std::initializer_list<int32_t> stride) {
    return run_op("MaxPoolV2",
                  {kImage, Tensor::vector<int32_t>(size),
                   Tensor::vector<int32_t>(stride)},
                  {{"padding", "VALID"}});
  };
  expect_close(run({1, 2, 2, 1}, {1, 1, 1, 1}), square({2, 2, 2, 3}));
  expect_error(run({1, 2, 2, 1}, {1, 1, 1}), Code::kInvalidArgument,
               "3 values");
  expect_error(run({1, 2, 2, 1}, {1, 0, 1, 1}), Code::kInvalidArgument,
               "positive");
}

TEST_CASE("MaxPool may pool neighbouring channels instead of positions") {
  const Tensor in = Tensor::of<float>({1, 1, 2, 4}, {1, 5, 2, 3, 9, 8, 0, 7});
  expect_close(
      run_op("MaxPool", {in}, windows({1, 1, 1, 2}, {1, 1, 1, 2}, "SAME")),
      Tensor::of<float>({1, 1, 2, 2}, {5, 3, 9, 7}));
  const auto refused = [&](Ints size, Ints stride) {
    expect_error(run_op("MaxPool", {in}, windows(size, stride, "SAME")),
                 Code::kUnimplemented, "the window");
  };
  refused({1, 1, 2, 2}, {1, 1, 2, 2});
  refused({1, 1, 1, 3}, {1, 1, 1, 3});
  refused({1, 1, 1, 2}, {1, 1, 1, 1});
  refused({2, 1, 1, 1}, {1, 1, 1, 1});
}

TEST_CASE("pools take inputs with channels first") {
  const Tensor in = Tensor::of<float>({1, 2, 1, 3}, {1, 2, 3, 30, 20, 10});
  AttrMap attrs = windows({1, 1, 1, 2}, {1, 1, 1, 1});
  attrs["data_format"] = "NCHW";
  expect_close(run_op("MaxPool", {in}, attrs),
               Tensor::of<float>({1, 2, 1, 2}, {2, 3, 30, 20}));
  expect_close(run_op("AvgPool", {in}, attrs),
               Tensor::of<float>({1, 2, 1, 2}, {1.5f, 2.5f, 25, 15}));
  expect_close(run_op("MaxPoolGrad",
                      {in, Tensor::make(DataType::kFloat, {1, 2, 1, 2}),
                       Tensor::of<float>({1, 2, 1, 2}, {1, 2, 3, 4})},
                      attrs),
               Tensor::of<float>({1, 2, 1, 3}, {0, 1, 2, 3, 4, 0}));
}

TEST_CASE("a pool of nothing is nothing") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 1, 1, 1});
  const auto none = [](const Shape& shape) {
    return Tensor::make(DataType::kFloat, shape);
  };
  expect_close(run_op("MaxPool", {none({0, 2, 2, 1})}, attrs),
               none({0, 1, 1, 1}));
  expect_close(run_op("AvgPool", {none({1, 2, 2, 0})}, attrs),
               none({1, 1, 1, 0}));
}

// As in TensorFlow, whose kernels know less than its shape functions.
TEST_CASE("pools refuse windows larger than an input of known shape") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 1, 1, 1});
  const auto none = [](const Shape& shape) {
    return Tensor::make(DataType::kFloat, shape);
  };
  const Tensor one = none({1, 1, 1, 1});
  for (const char* op : {"MaxPool", "AvgPool"})
    expect_close(run_op_beyond_inference(op, {one}, attrs), none({1, 0, 0, 1}));
  // The windows of a max pool slide over the channels, too.
  expect_close(run_op_beyond_inference("MaxPool", {none({1, 2, 2, 0})}, attrs),
               none({1, 1, 1, 0}));
  expect_close(run_op_beyond_inference("MaxPoolGradGrad",
                                       {one, none({1, 0, 0, 1}), one}, attrs),
               none({1, 0, 0, 1}));
}

TEST_CASE("MaxPool3DGradGrad refuses an input without elements") {
  const AttrMap attrs = windows({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1});
  const Tensor none = Tensor::make(DataType::kFloat, {1, 2, 2, 2, 0});
  expect_error(run_op("MaxPool3DGradGrad", {none, none, none}, attrs),
               Code::kInvalidArgument, "has no elements");
  expect_close(run_op("MaxPool3DGrad", {none, none, none}, attrs), none);
}

// As in TensorFlow.
TEST_CASE("AvgPoolGrad takes an unfitting gradient if it has no elements") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 1, 1, 1});
  const auto none = [](const Shape& shape) {
    return Tensor::make(DataType::kFloat, shape);
  };
  expect_close(
      run_op("AvgPoolGrad",
             {Tensor::vector<int32_t>({1, 3, 3, 0}), none({1, 5, 5, 1})},
             attrs),
      none({1, 3, 3, 0}));
  expect_close(
      run_op("AvgPoolGrad",
             {Tensor::vector<int32_t>({1, 2, 2, 1}), none({1, 2, 0, 1})},
             attrs),
      square({0, 0, 0, 0}));
  expect_error(
      run_op("AvgPoolGrad",
             {Tensor::vector<int32_t>({1, 2, 2, 1}), none({1, 0, 1})}, attrs),
      Code::kInvalidArgument, "grad is float[1,0,1]");
}

TEST_CASE("pools refuse windows that are absurd or do not fit") {
  expect_error(run_op("MaxPool", {kImage}, windows({1, 5, 5, 1}, {1, 1, 1, 1})),
               Code::kInvalidArgument, "does not fit");
  expect_error(run_op("MaxPool", {kImage}, windows({1, 0, 1, 1}, {1, 1, 1, 1})),
               Code::kInvalidArgument, "positive");
  expect_error(
      run_op("MaxPool", {Tensor::make(DataType::kFloat, {3, 3, 1})}, kTwoByTwo),
      Code::kInvalidArgument, "4");
  const int64_t huge = std::numeric_limits<int32_t>::max();
  const auto all = run_op("MaxPool", {kImage},
                          windows({1, huge, huge, 1}, {1, 1, 1, 1}, "SAME"));
  expect_close(all,
               Tensor::of<float>({1, 3, 3, 1}, {3, 3, 3, 3, 3, 3, 3, 3, 3}));
  expect_error(
      run_op("MaxPool3D",
             {Tensor::make(DataType::kFloat, {0, huge, huge, huge, 1})},
             windows({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1})),
      Code::kInvalidArgument,
      "[MaxPool3D] 2147483647 x 2147483647 x 2147483647 positions of 1 "
      "channels are too many");
}

TEST_CASE("the gradient of a max pool goes to the first largest element") {
  const Tensor out = square({2, 2, 2, 3});
  expect_close(
      run_op("MaxPoolGrad", {kImage, out, square({1, 10, 100, 1000})},
             kTwoByTwo),
      Tensor::of<float>({1, 3, 3, 1}, {0, 0, 10, 101, 0, 0, 0, 0, 1000}));
  const Tensor counting =
      Tensor::of<float>({1, 3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  expect_close(run_op("MaxPoolGradGrad", {kImage, out, counting}, kTwoByTwo),
               square({3, 2, 3, 8}));
  expect_error(
      run_op("MaxPoolGrad", {kImage, out, Tensor::of<float>({1, 1, 1, 1}, {1})},
             kTwoByTwo),
      Code::kInvalidArgument, "input 2");
}

TEST_CASE("argmax pools tell the position, in the image or in the batch") {
  Tensor two = Tensor::make(DataType::kFloat, {2, 3, 3, 1});
  for (int64_t i = 0; i < 18; ++i)
    two.mutable_data<float>()[i] = kImage.data<float>()[i % 9];
  AttrMap attrs = kTwoByTwo;
  auto pooled = run_op("MaxPoolWithArgmax", {two}, attrs);
  REQUIRE(pooled.ok());
  expect_close((*pooled)[1],
               Tensor::of<int64_t>({2, 2, 2, 1}, {3, 2, 3, 8, 3, 2, 3, 8}));
  const Tensor grad = Tensor::of<float>({2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor expected = Tensor::of<float>(
      {2, 3, 3, 1}, {0, 0, 2, 4, 0, 0, 0, 0, 4, 0, 0, 6, 12, 0, 0, 0, 0, 8});
  expect_close(
      run_op("MaxPoolGradWithArgmax", {two, grad, (*pooled)[1]}, attrs),
      expected);
  attrs["include_batch_in_index"] = true;
  AttrMap narrow = attrs;
  narrow["Targmax"] = DataType::kInt32;
  pooled = run_op("MaxPoolWithArgmax", {two}, narrow);
  REQUIRE(pooled.ok());
  expect_close((*pooled)[1],
               Tensor::of<int32_t>({2, 2, 2, 1}, {3, 2, 3, 8, 12, 11, 12, 17}));
  expect_close(
      run_op("MaxPoolGradWithArgmax", {two, grad, (*pooled)[1]}, attrs),
      expected);
  expect_close(
      run_op("MaxPoolGradGradWithArgmax", {two, two, (*pooled)[1]}, attrs),
      (*pooled)[0]);
}

TEST_CASE("MaxPoolGradWithArgmax refuses positions out of range") {
  const Tensor grad = Tensor::of<float>({1, 1, 1, 1}, {1});
  for (int64_t at : {-1, 9})
    expect_error(run_op("MaxPoolGradWithArgmax",
                        {kImage, grad, Tensor::of<int64_t>({1, 1, 1, 1}, {at})},
                        kTwoByTwo),
                 Code::kInvalidArgument, "out of range [0, 9)");
}

TEST_CASE("an average pool does not count the padding") {
  Tensor in = Tensor::make(DataType::kFloat, {1, 3, 3, 1});
  for (int i = 0; i < 9; ++i) in.mutable_data<float>()[i] = float(i);
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  expect_close(run_op("AvgPool", {in}, attrs), square({2, 3.5f, 6.5f, 8}));
  const Tensor sizes = Tensor::vector<int32_t>({1, 3, 3, 1});
  expect_close(run_op("AvgPoolGrad", {sizes, square({1, 1, 1, 1})}, attrs),
               Tensor::of<float>({1, 3, 3, 1}, {.25f, .25f, .5f, .25f, .25f,
                                                .5f, .5f, .5f, 1}));
  expect_error(run_op("AvgPoolGrad",
                      {sizes, Tensor::of<float>({1, 1, 2, 1}, {1, 1})}, attrs),
               Code::kInvalidArgument, "[1,2,2,1]");
  expect_error(
      run_op("AvgPoolGrad",
             {Tensor::vector<int32_t>({1, -3, 3, 1}), square({1, 1, 1, 1})},
             attrs),
      Code::kInvalidArgument, "-3");
}

TEST_CASE("MaxPool3DGrad gives each of the largest elements the gradient") {
  const Tensor in = Tensor::of<float>({1, 2, 2, 1, 1}, {5, 1, 5, 5});
  const AttrMap attrs = windows({1, 2, 2, 1, 1}, {1, 1, 1, 1, 1}, "VALID");
  const Tensor top = Tensor::of<float>({1, 1, 1, 1, 1}, {5});
  const Tensor grad = Tensor::of<float>({1, 1, 1, 1, 1}, {3});
  expect_close(run_op("MaxPool3DGrad", {in, top, grad}, attrs),
               Tensor::of<float>({1, 2, 2, 1, 1}, {3, 0, 3, 3}));
}

TEST_CASE("MaxPoolWithArgmax refuses an empty input") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 1, 1, 1}, "SAME");
  for (const Shape& shape :
       {Shape({0, 2, 2, 1}), Shape({1, 0, 2, 1}), Shape({1, 2, 2, 0})})
    expect_error(run_op("MaxPoolWithArgmax",
                        {Tensor::make(DataType::kFloat, shape)}, attrs),
                 Code::kInvalidArgument, "is empty");
}

TEST_CASE("pools slide along the depth as well") {
  Tensor in = Tensor::make(DataType::kFloat, {1, 2, 2, 2, 1});
  for (int i = 0; i < 8; ++i) in.mutable_data<float>()[i] = float(i);
  const AttrMap attrs = windows({1, 2, 2, 2, 1}, {1, 2, 2, 2, 1}, "SAME");
  const Tensor one = Tensor::of<float>({1, 1, 1, 1, 1}, {1});
  const Tensor top = Tensor::of<float>({1, 1, 1, 1, 1}, {7});
  expect_close(run_op("MaxPool3D", {in}, attrs), top);
  expect_close(run_op("AvgPool3D", {in}, attrs),
               Tensor::of<float>({1, 1, 1, 1, 1}, {3.5f}));
  expect_close(run_op("MaxPool3DGrad", {in, top, one}, attrs),
               Tensor::of<float>({1, 2, 2, 2, 1}, {0, 0, 0, 0, 0, 0, 0, 1}));
  expect_close(run_op("MaxPool3DGradGrad", {in, top, in}, attrs), top);
  const float part = 1 / 8.0f;
  expect_close(run_op("AvgPool3DGrad",
                      {Tensor::vector<int32_t>({1, 2, 2, 2, 1}), one}, attrs),
               Tensor::of<float>({1, 2, 2, 2, 1}, {part, part, part, part, part,
                                                   part, part, part}));
  expect_error(run_op("MaxPool3D", {in},
                      windows({1, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, "SAME")),
               Code::kUnimplemented, "channels");
}

}  // namespace
}  // namespace tagflow::devices
