// Convolutions, compared with the definition; their gradients satisfy the
// equation of a bilinear function: <dy, f(x, w)> = <dx, x> = <dw, w>.
#include <doctest/doctest.h>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/small_numbers.h"

namespace tagflow::devices {
namespace {

using Ints = std::vector<int64_t>;

Tensor numbers(const Shape& shape, int seed) {
  return devices::numbers(DataType::kDouble, shape, seed);
}

double inner_product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i)
    sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

Tensor sizes_of(const Tensor& tensor) {
  Tensor sizes = Tensor::make(DataType::kInt32, {tensor.rank()});
  for (int i = 0; i < tensor.rank(); ++i)
    sizes.mutable_data<int32_t>()[i] = int32_t(tensor.dim(i));
  return sizes;
}

// A two-dimensional convolution by its definition; channels last.
Tensor convolution(const Tensor& x, const Tensor& w, int stride, int dilation,
                   int pad_y, int pad_x, const Shape& out_shape,
                   bool depthwise) {
  Tensor y = Tensor::make(DataType::kDouble, out_shape);
  const int64_t channels = x.dim(3), per_group = w.dim(2), outs = y.dim(3);
  const int64_t groups = depthwise ? channels : channels / per_group;
  const auto element = [](const Tensor& t, int64_t a, int64_t b, int64_t c,
                          int64_t d) {
    return t.data<double>()[((a * t.dim(1) + b) * t.dim(2) + c) * t.dim(3) + d];
  };
  double* to = y.mutable_data<double>();
  for (int64_t n = 0; n < y.dim(0); ++n)
    for (int64_t i = 0; i < y.dim(1); ++i)
      for (int64_t j = 0; j < y.dim(2); ++j)
        for (int64_t o = 0; o < outs; ++o, ++to) {
          *to = 0;
          const int64_t group = o / (outs / groups);
          for (int64_t p = 0; p < w.dim(0); ++p)
            for (int64_t q = 0; q < w.dim(1); ++q) {
              const int64_t row = i * stride - pad_y + p * dilation;
              const int64_t column = j * stride - pad_x + q * dilation;
              if (row < 0 || row >= x.dim(1) || column < 0 ||
                  column >= x.dim(2))
                continue;
              if (depthwise)
                *to += element(x, n, row, column, group) *
                       element(w, p, q, group, o % w.dim(3));
              else
                for (int64_t c = 0; c < per_group; ++c)
                  *to += element(x, n, row, column, group * per_group + c) *
                         element(w, p, q, c, o);
            }
        }
  return y;
}

// Swaps the channels from the last place to place 1.
Tensor channels_first(const Tensor& t) {
  Tensor out =
      Tensor::make(t.dtype(), {t.dim(0), t.dim(3), t.dim(1), t.dim(2)});
  const int64_t positions = t.dim(1) * t.dim(2), channels = t.dim(3);
  for (int64_t n = 0; n < t.dim(0); ++n)
    for (int64_t i = 0; i < positions; ++i)
      for (int64_t c = 0; c < channels; ++c)
        out.mutable_data<double>()[(n * channels + c) * positions + i] =
            t.data<double>()[(n * positions + i) * channels + c];
  return out;
}

struct Case {
  Shape input, filter;
  int stride = 1, dilation = 1;
  const char* padding = "VALID";
  Ints paddings = {};  // top, bottom, left, right
  Shape output;
  int pad_y = 0, pad_x = 0;
};

AttrMap attrs_of(const Case& c) {
  AttrMap attrs{{"strides", Ints{1, c.stride, c.stride, 1}},
                {"dilations", Ints{1, c.dilation, c.dilation, 1}},
                {"padding", c.padding}};
  if (!c.paddings.empty()) {
    Ints all{0, 0};
    all.insert(all.end(), c.paddings.begin(), c.paddings.end());
    all.insert(all.end(), {0, 0});
    attrs["explicit_paddings"] = all;
  }
  return attrs;
}

void check(const Case& c, bool depthwise) {
  INFO(c.input.to_string(), " * ", c.filter.to_string(), " ", c.padding, " ",
       c.stride, " ", c.dilation);
  const std::string op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  const Tensor x = numbers(c.input, 1), w = numbers(c.filter, 4);
  const AttrMap attrs = attrs_of(c);
  const auto y = run_op(op, {x, w}, attrs);
  expect_close(y, convolution(x, w, c.stride, c.dilation, c.pad_y, c.pad_x,
                              c.output, depthwise));
  const Tensor dy = numbers(c.output, 2);
  const double product = inner_product(dy, (*y)[0]);
  const auto dx = run_op(op + "BackpropInput", {sizes_of(x), w, dy}, attrs);
  REQUIRE_MESSAGE(dx.ok(), dx.status().to_string());
  CHECK(inner_product((*dx)[0], x) == product);
  const auto dw = run_op(op + "BackpropFilter", {x, sizes_of(w), dy}, attrs);
  REQUIRE_MESSAGE(dw.ok(), dw.status().to_string());
  CHECK(inner_product((*dw)[0], w) == product);

  // The results do not differ with the channels first.
  AttrMap first = attrs;
  first["data_format"] = "NCHW";
  first["strides"] = Ints{1, 1, c.stride, c.stride};
  first["dilations"] = Ints{1, 1, c.dilation, c.dilation};
  if (!c.paddings.empty()) {
    Ints all{0, 0, 0, 0};
    all.insert(all.end(), c.paddings.begin(), c.paddings.end());
    first["explicit_paddings"] = all;
  }
  const Tensor x1 = channels_first(x), dy1 = channels_first(dy);
  expect_close(run_op(op, {x1, w}, first), channels_first((*y)[0]));
  expect_close(run_op(op + "BackpropInput", {sizes_of(x1), w, dy1}, first),
               channels_first((*dx)[0]));
  expect_close(run_op(op + "BackpropFilter", {x1, sizes_of(w), dy1}, first),
               (*dw)[0]);
}

TEST_CASE("a convolution and its gradients agree with the definition") {
  check({{2, 5, 6, 3}, {2, 3, 3, 4}, 1, 1, "VALID", {}, {2, 4, 4, 4}}, false);
  check({{1, 5, 6, 3}, {3, 3, 3, 2}, 1, 1, "SAME", {}, {1, 5, 6, 2}, 1, 1},
        false);
  check({{1, 6, 7, 2}, {3, 3, 2, 5}, 2, 1, "SAME", {}, {1, 3, 4, 5}, 0, 1},
        false);
  check({{1, 7, 7, 2}, {2, 2, 2, 3}, 1, 3, "VALID", {}, {1, 4, 4, 3}}, false);
  check({{1, 4, 5, 2},
         {2, 2, 2, 3},
         3,
         1,
         "EXPLICIT",
         {1, 2, 3, 4},
         {1, 2, 4, 3},
         1,
         3},
        false);
  // The stride leaves a gap between windows, and elements that none covers.
  check({{1, 7, 7, 2}, {1, 1, 2, 3}, 3, 1, "VALID", {}, {1, 3, 3, 3}}, false);
}

TEST_CASE("pointwise, grouped and many-block convolutions agree too") {
  check({{2, 3, 3, 4}, {1, 1, 4, 5}, 1, 1, "VALID", {}, {2, 3, 3, 5}}, false);
  check({{1, 4, 4, 6}, {2, 2, 2, 9}, 1, 1, "VALID", {}, {1, 3, 3, 9}}, false);
  check({{1, 60, 60, 8}, {3, 3, 8, 4}, 1, 1, "SAME", {}, {1, 60, 60, 4}, 1, 1},
        false);
}

TEST_CASE("a depthwise convolution gives each channel its own filters") {
  check({{2, 5, 5, 3}, {2, 2, 3, 1}, 1, 1, "VALID", {}, {2, 4, 4, 3}}, true);
  check({{1, 5, 5, 3}, {3, 3, 3, 2}, 2, 1, "SAME", {}, {1, 3, 3, 6}, 1, 1},
        true);
  check({{1, 4, 5, 2},
         {2, 2, 2, 2},
         1,
         2,
         "EXPLICIT",
         {1, 2, 3, 4},
         {1, 5, 10, 4},
         1,
         3},
        true);
}

TEST_CASE("a three-dimensional convolution slides along the depth as well") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor x = numbers({1, 3, 2, 2, 2}, 1), w = numbers({2, 1, 1, 2, 3}, 2);
  const auto y = run_op("Conv3D", {x, w}, attrs);
  REQUIRE(y.ok());
  REQUIRE((*y)[0].shape() == Shape{1, 2, 2, 2, 3});
  // Output (depth 1, 0, 0, channel 2): two taps of two channels.
  const double* in = x.data<double>();
  const double* f = w.data<double>();
  const double expected =
      in[8] * f[2] + in[9] * f[5] + in[16] * f[8] + in[17] * f[11];
  CHECK((*y)[0].data<double>()[12 + 2] == expected);
  const Tensor dy = numbers({1, 2, 2, 2, 3}, 3);
  const double product = inner_product(dy, (*y)[0]);
  const auto dx = run_op("Conv3DBackpropInputV2", {sizes_of(x), w, dy}, attrs);
  REQUIRE(dx.ok());
  CHECK(inner_product((*dx)[0], x) == product);
  const auto dw = run_op("Conv3DBackpropFilterV2", {x, sizes_of(w), dy}, attrs);
  REQUIRE(dw.ok());
  CHECK(inner_product((*dw)[0], w) == product);
}

TEST_CASE("convolutions take floats of 16 bits and integers") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Half two(2.0f);
  expect_close(run_op("Conv2D",
                      {Tensor::of<Half>({1, 1, 2, 1}, {two, two}),
                       Tensor::of<Half>({1, 2, 1, 1}, {two, two})},
                      attrs),
               Tensor::of<Half>({1, 1, 1, 1}, {Half(8.0f)}));
  expect_close(run_op("Conv2D",
                      {Tensor::of<int32_t>({1, 1, 2, 1}, {3, 4}),
                       Tensor::of<int32_t>({1, 2, 1, 1}, {5, 6})},
                      attrs),
               Tensor::of<int32_t>({1, 1, 1, 1}, {39}));
}

TEST_CASE("Conv2DBackpropInput takes an input size of height and width") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor w = Tensor::of<float>({2, 2, 1, 1}, {1, 1, 1, 1});
  const Tensor dy = Tensor::of<float>({1, 2, 2, 1}, {1, 1, 1, 1});
  expect_close(run_op("Conv2DBackpropInput",
                      {Tensor::vector<int32_t>({3, 3}), w, dy}, attrs),
               Tensor::of<float>({1, 3, 3, 1}, {1, 2, 1, 2, 4, 2, 1, 2, 1}));
}

TEST_CASE("an empty batch convolves to an empty batch") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor none = Tensor::make(DataType::kDouble, {0, 3, 3, 1});
  const Tensor w = numbers({2, 2, 1, 1}, 0);
  expect_close(run_op("Conv2D", {none, w}, attrs),
               Tensor::make(DataType::kDouble, {0, 2, 2, 1}));
  const auto dw =
      run_op("Conv2DBackpropFilter",
             {none, sizes_of(w), Tensor::make(DataType::kDouble, {0, 2, 2, 1})},
             attrs);
  expect_close(dw, Tensor::of<double>({2, 2, 1, 1}, {0, 0, 0, 0}));
}

TEST_CASE("the gradient of an empty filter is empty") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor dy = Tensor::make(DataType::kDouble, {1, 2, 2, 0});
  expect_close(run_op("Conv2DBackpropFilter",
                      {numbers({1, 3, 3, 1}, 0),
                       Tensor::vector<int32_t>({2, 2, 1, 0}), dy},
                      attrs),
               Tensor::make(DataType::kDouble, {2, 2, 1, 0}));
  const auto dx = run_op("Conv2DBackpropInput",
                         {Tensor::vector<int32_t>({1, 2, 1, 1}),
                          Tensor::make(DataType::kDouble, {1, 1, 1, 0}),
                          Tensor::make(DataType::kDouble, {1, 2, 1, 0})},
                         attrs);
  expect_close(dx, Tensor::of<double>({1, 2, 1, 1}, {0, 0}));
}

// As in TensorFlow.
TEST_CASE("an empty filter convolves to zeros or to nothing") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor x = numbers({1, 3, 3, 2}, 0);
  const auto none = [](const Shape& shape) {
    return Tensor::make(DataType::kDouble, shape);
  };
  expect_close(run_op("Conv2D", {x, none({2, 2, 2, 0})}, attrs),
               none({1, 2, 2, 0}));
  expect_close(run_op("Conv2D", {x, none({2, 0, 2, 0})}, attrs),
               none({1, 2, 4, 0}));
  expect_close(
      run_op("Conv2D", {none({0, 3, 3, 2}), none({0, 2, 2, 1})}, attrs),
      none({0, 4, 2, 1}));
  const char* depthwise = "DepthwiseConv2dNative";
  expect_close(run_op(depthwise, {x, none({2, 2, 2, 0})}, attrs),
               none({1, 2, 2, 0}));
  Tensor zeros = numbers({1, 4, 2, 2}, 0);
  for (double& value : zeros.mutable_flat<double>()) value = 0;
  expect_close(run_op(depthwise, {x, none({0, 2, 2, 1})}, attrs), zeros);
  expect_error(
      run_op("Conv3D", {numbers({1, 3, 3, 3, 1}, 0), none({2, 2, 2, 1, 0})},
             {{"strides", Ints{1, 1, 1, 1, 1}}, {"padding", "VALID"}}),
      Code::kInvalidArgument, "empty");
}

TEST_CASE("convolutions refuse inputs that do not fit") {
  const auto refused = [](const char* text, const Shape& x, const Shape& w,
                          AttrMap attrs = {},
                          Code code = Code::kInvalidArgument) {
    attrs.emplace("strides", Ints{1, 1, 1, 1});
    attrs.emplace("padding", "VALID");
    expect_error(run_op("Conv2D", {numbers(x, 0), numbers(w, 0)}, attrs), code,
                 text);
  };
  refused("does not fit", {1, 3, 3, 3}, {2, 2, 2, 4});
  refused("does not fit", {1, 3, 3, 2}, {2, 2, 1, 3});
  refused("does not fit", {1, 3, 3, 1}, {5, 5, 1, 1});
  refused("empty", {1, 3, 3, 1}, {0, 2, 1, 1});
  refused("does not fit", {1, 3, 3, 1}, {1, 1, 0, 1});
  refused("does not fit", {1, 3, 3, 0}, {1, 1, 0, 1});
  refused("not of 4 dimensions", {1, 3, 1}, {1, 2, 1, 1});
  refused("positive", {1, 3, 3, 1}, {2, 2, 1, 1},
          {{"strides", Ints{1, 0, 1, 1}}});
  refused("4", {1, 3, 3, 1}, {2, 2, 1, 1}, {{"strides", Ints{1, 1, 1}}});
  refused("batch", {1, 3, 3, 1}, {2, 2, 1, 1}, {{"strides", Ints{2, 1, 1, 1}}},
          Code::kUnimplemented);
  refused("channels", {1, 3, 3, 1}, {2, 2, 1, 1},
          {{"dilations", Ints{1, 1, 1, 2}}});
  refused("-1", {1, 3, 3, 1}, {2, 2, 1, 1},
          {{"padding", "EXPLICIT"},
           {"explicit_paddings", Ints{0, 0, 1, -1, 0, 0, 0, 0}}});
  refused("not EXPLICIT", {1, 3, 3, 1}, {2, 2, 1, 1},
          {{"explicit_paddings", Ints{0, 0, 1, 1, 0, 0, 0, 0}}});
}

TEST_CASE("convolution gradients refuse shapes of another convolution") {
  const AttrMap attrs{{"strides", Ints{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor w = numbers({2, 2, 1, 1}, 0);
  const auto refused = [&](std::initializer_list<int32_t> sizes,
                           const Shape& dy, const char* text) {
    expect_error(
        run_op("Conv2DBackpropInput",
               {Tensor::vector<int32_t>(sizes), w, numbers(dy, 0)}, attrs),
        Code::kInvalidArgument, text);
  };
  refused({1, 3, 3, 1}, {1, 3, 2, 1}, "make [1,2,2,1]");
  refused({1, 3, 3, 1, 1}, {1, 2, 2, 1}, "not a vector of 4");
  refused({1, -3, 3, 1}, {1, 2, 2, 1}, "-3");
  refused({2, 3, 3, 1}, {1, 2, 2, 1}, "make [2,2,2,1]");
  expect_error(
      run_op("Conv2DBackpropFilter",
             {numbers({1, 3, 3, 1}, 0), Tensor::vector<int32_t>({2, 2, 1}),
              numbers({1, 2, 2, 1}, 0)},
             attrs),
      Code::kInvalidArgument, "not a vector of 4");
}

}  // namespace
}  // namespace tagflow::devices
