// Batch and local response normalisation, and resized images; values are
// TensorFlow's.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::initializer_list<float> values) {
  return Tensor::vector<float>(values);
}
Tensor image(const Shape& shape, std::initializer_list<float> values) {
  return Tensor::of<float>(shape, values);
}

const Tensor kNone = Tensor::make(DataType::kFloat, {0});
const Tensor kX = image({1, 3, 1, 2}, {1, 2, 3, 4, 5, 7});
const Tensor kScale = floats({1, 2});
const Tensor kOffset = floats({0.5f, -1});
const AttrMap kTraining{{"epsilon", 0.1f}};

TEST_CASE("batch normalisation measures the batch while training") {
  for (const char* op :
       {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    const auto out = run_op(op, {kX, kScale, kOffset, kNone, kNone}, kTraining);
    REQUIRE_MESSAGE(out.ok(), out.status().to_string());
    expect_close((*out)[0],
                 image({1, 3, 1, 2}, {-0.702407f, -3.244674f, 0.5f, -1.320668f,
                                      1.702407f, 1.565341f}),
                 1e-6);
    expect_close((*out)[1], floats({3, 4.3333333f}));
    expect_close((*out)[2], floats({4, 6.3333333f}));
    expect_close((*out)[3], floats({3, 4.3333333f}));
    expect_close((*out)[4], floats({2.6666667f, 4.2222222f}));
  }
}

TEST_CASE("batch normalisation moves running averages by the factor") {
  AttrMap attrs = kTraining;
  attrs["exponential_avg_factor"] = 0.25f;
  const auto out =
      run_op("FusedBatchNormV3",
             {kX, kScale, kOffset, floats({1, 2}), floats({4, 9})}, attrs);
  REQUIRE(out.ok());
  expect_close((*out)[1], floats({1.5f, 2.5833333f}));
  expect_close((*out)[2], floats({4, 8.3333333f}));
  expect_error(
      run_op("FusedBatchNormV3", {kX, kScale, kOffset, kNone, kNone}, attrs),
      Code::kInvalidArgument, "not a vector of 2");
}

TEST_CASE("batch normalisation applies given averages otherwise") {
  AttrMap attrs = kTraining;
  attrs["is_training"] = false;
  const auto out =
      run_op("FusedBatchNormV3",
             {kX, kScale, kOffset, floats({1, 2}), floats({4, 9})}, attrs);
  REQUIRE(out.ok());
  expect_close((*out)[0],
               image({1, 3, 1, 2},
                     {0.5f, -1, 1.48773f, 0.325987f, 2.475459f, 2.314968f}),
               1e-6);
  expect_close((*out)[1], floats({1, 2}));
  expect_close((*out)[2], floats({4, 9}));
  expect_error(
      run_op("FusedBatchNormV3", {kX, kScale, kOffset, kNone, kNone}, attrs),
      Code::kInvalidArgument, "input 3");
}

TEST_CASE("batch normalisation finds the channels of its data format") {
  AttrMap attrs = kTraining;
  attrs["data_format"] = "NCHW";
  expect_close(run_op("FusedBatchNormV3",
                      {image({1, 2, 3, 1}, {1, 3, 5, 2, 4, 7}), kScale, kOffset,
                       kNone, kNone},
                      attrs),
               image({1, 2, 3, 1}, {-0.702407f, 0.5f, 1.702407f, -3.244674f,
                                    -1.320668f, 1.565341f}),
               1e-6);
  attrs["data_format"] = "NDHWC";
  expect_close(run_op("FusedBatchNormV3",
                      {kX.reshaped({1, 3, 1, 1, 2}).value(), kScale, kOffset,
                       kNone, kNone},
                      attrs),
               image({1, 3, 1, 1, 2}, {-0.702407f, -3.244674f, 0.5f, -1.320668f,
                                       1.702407f, 1.565341f}),
               1e-6);
}

TEST_CASE("batch normalisation of a large batch has exact statistics") {
  Tensor x = Tensor::make(DataType::kFloat, {8, 20, 20, 3});
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.mutable_data<float>()[i] = float(1000 + i / 3 % 2);
  const auto out = run_op(
      "FusedBatchNormV2",
      {x, floats({1, 1, 1}), floats({0, 0, 0}), kNone, kNone}, kTraining);
  REQUIRE(out.ok());
  expect_close((*out)[3], floats({1000.5f, 1000.5f, 1000.5f}));
  expect_close((*out)[4], floats({.25f, .25f, .25f}));
}

TEST_CASE("batch normalisation of an empty batch gives no statistics") {
  const Tensor empty = Tensor::make(DataType::kFloat, {0, 3, 1, 2});
  for (const bool training : {true, false}) {
    AttrMap attrs = kTraining;
    attrs["is_training"] = training;
    const auto out = run_op("FusedBatchNormV3",
                            {empty, kScale, kOffset, kScale, kScale}, attrs);
    REQUIRE(out.ok());
    expect_close((*out)[1], floats({kNaN, kNaN}));
    expect_close((*out)[2], floats({kNaN, kNaN}));
    expect_close((*out)[4], floats({0, 0}));
    // Nothing is added to a gradient, whatever the statistics are.
    const Tensor none = floats({kNaN, -1});
    const auto grad = run_op("FusedBatchNormGradV3",
                             {empty, empty, kScale, none, none, kNone}, attrs);
    REQUIRE(grad.ok());
    expect_close((*grad)[0], empty);
    expect_close((*grad)[1], floats({0, 0}));
    expect_close((*grad)[2], floats({0, 0}));
  }
}

TEST_CASE("FusedBatchNormGrad by given averages is finite for infinite x") {
  AttrMap attrs = kTraining;
  attrs["is_training"] = false;
  const float infinity = std::numeric_limits<float>::infinity();
  const auto grad =
      run_op("FusedBatchNormGradV2",
             {image({1, 1, 1, 2}, {1, 2}), image({1, 1, 1, 2}, {infinity, 1}),
              kScale, floats({0, 0}), floats({0.15f, 0.15f})},
             attrs);
  REQUIRE(grad.ok());
  expect_close((*grad)[0], image({1, 1, 1, 2}, {2, 8}), 1e-6);
}

TEST_CASE("batch normalisation's reserved outputs have TensorFlow's shapes") {
  for (const bool training : {true, false}) {
    AttrMap attrs = kTraining;
    attrs["is_training"] = training;
    const auto out = run_op("FusedBatchNormV3",
                            {kX, kScale, kOffset, kScale, kScale}, attrs);
    REQUIRE(out.ok());
    expect_close((*out)[5], Tensor::scalar(0.0f));
    for (const std::string op :
         {"FusedBatchNormGrad", "FusedBatchNormGradV2"}) {
      const auto grad = run_op(op, {kX, kX, kScale, kScale, kScale}, attrs);
      REQUIRE(grad.ok());
      expect_close((*grad)[3], kNone);
      expect_close((*grad)[4], kNone);
    }
  }
}

TEST_CASE("batch normalisation reads a data format only for the channels") {
  AttrMap attrs = kTraining;
  attrs["data_format"] = "NDHWC";
  const auto flat = run_op("FusedBatchNormV3",
                           {kX, kScale, kOffset, kNone, kNone}, kTraining);
  REQUIRE(flat.ok());
  expect_close(
      run_op_beyond_inference("FusedBatchNormV3",
                              {kX, kScale, kOffset, kNone, kNone}, attrs),
      (*flat)[0]);
  expect_close(
      run_op_beyond_inference("FusedBatchNormGradV3",
                              {kX, kX, kScale, (*flat)[3], (*flat)[4], kNone},
                              attrs),
      run_op("FusedBatchNormGradV3",
             {kX, kX, kScale, (*flat)[3], (*flat)[4], kNone}, kTraining)
          .value()[0]);
}

TEST_CASE("the gradient of batch normalisation") {
  const Tensor dy = image({1, 3, 1, 2}, {1, 0, 2, -1, .5f, 3});
  const Tensor mean = floats({3, 4.3333333f});
  const Tensor variance = floats({2.6666667f, 4.2222222f});
  const auto trained =
      run_op("FusedBatchNormGrad", {dy, kX, kScale, mean, variance}, kTraining);
  REQUIRE(trained.ok());
  expect_close((*trained)[0],
               image({1, 3, 1, 2}, {-0.245069f, 0.801257f, 0.501003f,
                                    -1.397254f, -0.255934f, 0.595996f}),
               2e-6);
  expect_close((*trained)[1], floats({-0.601204f, 4.008346f}), 2e-6);
  expect_close((*trained)[2], floats({3.5f, 2}));
  AttrMap attrs = kTraining;
  attrs["is_training"] = false;
  const auto fixed =
      run_op("FusedBatchNormGradV3",
             {dy, kX, kScale, floats({1, 2}), floats({4, 9}), kNone}, attrs);
  REQUIRE(fixed.ok());
  expect_close((*fixed)[0],
               image({1, 3, 1, 2}, {0.493865f, 0, 0.98773f, -0.662994f,
                                    0.246932f, 1.988981f}),
               2e-6);
  expect_close((*fixed)[1], floats({2.963189f, 4.309458f}), 2e-6);
}

TEST_CASE("batch normalisation refuses inputs that do not fit") {
  const auto refused = [](const std::vector<Tensor>& in, const char* text) {
    expect_error(run_op("FusedBatchNormV3", in, kTraining),
                 Code::kInvalidArgument, text);
  };
  refused({kX, kNone, kOffset, kNone, kNone}, "input 1");
  refused({kX.reshaped({3, 1, 2}).value(), kScale, kOffset, kNone, kNone},
          "not of 4 or 5 dimensions");
  expect_error(run_op("FusedBatchNormGradV2",
                      {image({1, 1, 1, 2}, {1, 2}), kX, kScale, kScale, kScale},
                      kTraining),
               Code::kInvalidArgument, "y_backprop");
}

TEST_CASE("local responses are normalised by their neighbours") {
  const AttrMap attrs{{"depth_radius", int64_t(1)},
                      {"bias", 1.0f},
                      {"alpha", 0.5f},
                      {"beta", 0.75f}};
  const Tensor in = image({1, 1, 1, 6}, {1, 2, 3, 4, -1, 2});
  const auto out = run_op("LRN", {in}, attrs);
  REQUIRE(out.ok());
  expect_close((*out)[0],
               image({1, 1, 1, 6}, {0.390795f, 0.4204482f, 0.3840365f,
                                    0.5526675f, -0.1601314f, 0.7815899f}),
               1e-6);
  const Tensor ones = image({1, 1, 1, 6}, {1, 1, 1, 1, 1, 1});
  expect_close(run_op("LRNGrad", {ones, in, (*out)[0]}, attrs),
               image({1, 1, 1, 6}, {0.2676362f, -0.0732583f, -0.1348077f,
                                    -0.0128181f, 0.346779f, 0.0767146f}),
               1e-6);
  expect_error(run_op("LRN", {floats({1})}, attrs), Code::kInvalidArgument,
               "4");
  expect_error(run_op("LRN", {in}, {{"depth_radius", int64_t(-1)}}),
               Code::kInvalidArgument, "negative");
  AttrMap wide = attrs;
  wide["depth_radius"] = std::numeric_limits<int64_t>::max();
  CHECK(run_op("LRN", {in}, wide).ok());
}

TEST_CASE("LRNGrad adds nothing if the gradient is 0") {
  const AttrMap attrs{{"depth_radius", int64_t(1)}, {"beta", kNaN}};
  const Tensor in = image({1, 1, 1, 4}, {1, 2, 3, 4});
  expect_close(
      run_op("LRNGrad", {image({1, 1, 1, 4}, {0, 0, 0, 1}), in, in}, attrs),
      image({1, 1, 1, 4}, {0, 0, kNaN, kNaN}));
}

const Tensor kSquares = image({1, 2, 3, 1}, {0, 1, 4, 9, 16, 25});

Result<Outputs> resized(const char* op, int32_t height, int32_t width,
                        AttrMap attrs = {}) {
  return run_op(op, {kSquares, Tensor::vector<int32_t>({height, width})},
                std::move(attrs));
}

TEST_CASE("bilinear images interpolate between pixels") {
  const char* op = "ResizeBilinear";
  expect_close(resized(op, 3, 5),
               image({1, 3, 5, 1}, {0, 0.6f, 1.6f, 3.4f, 4, 6, 9, 12.4f, 16.6f,
                                    18, 9, 13.2f, 17.8f, 23.2f, 25}),
               1e-6);
  expect_close(resized(op, 3, 5, {{"align_corners", true}}),
               image({1, 3, 5, 1}, {0, 0.5f, 1, 2.5f, 4, 4.5f, 6.5f, 8.5f,
                                    11.5f, 14.5f, 9, 12.5f, 16, 20.5f, 25}),
               1e-6);
  expect_close(resized(op, 3, 5, {{"half_pixel_centers", true}}),
               image({1, 3, 5, 1}, {0, 0.4f, 1, 2.8f, 4, 4.5f, 6.1f, 8.5f,
                                    12.1f, 14.5f, 9, 11.8f, 16, 21.4f, 25}),
               1e-6);
  expect_close(resized(op, 1, 2, {{"half_pixel_centers", true}}),
               image({1, 1, 2, 1}, {5.5f, 13}), 1e-6);
  expect_close(run_op(op, {Tensor::of<uint8_t>({1, 1, 2, 1}, {0, 200}),
                           Tensor::vector<int32_t>({1, 4})}),
               image({1, 1, 4, 1}, {0, 100, 200, 200}));
}

TEST_CASE("nearest neighbours repeat pixels") {
  const char* op = "ResizeNearestNeighbor";
  expect_close(
      resized(op, 3, 5),
      image({1, 3, 5, 1}, {0, 0, 1, 1, 4, 0, 0, 1, 1, 4, 9, 9, 16, 16, 25}));
  expect_close(resized(op, 3, 5, {{"align_corners", true}}),
               image({1, 3, 5, 1},
                     {0, 1, 1, 4, 4, 9, 16, 16, 25, 25, 9, 16, 16, 25, 25}));
  expect_close(
      resized(op, 3, 5, {{"half_pixel_centers", true}}),
      image({1, 3, 5, 1}, {0, 0, 1, 4, 4, 9, 9, 16, 25, 25, 9, 9, 16, 25, 25}));
}

TEST_CASE("gradients of resized images add up where pixels came from") {
  Tensor grads = Tensor::make(DataType::kFloat, {1, 3, 5, 1});
  for (int i = 0; i < 15; ++i) grads.mutable_data<float>()[i] = float(i);
  expect_close(
      run_op("ResizeBilinearGrad", {grads, kSquares}),
      image({1, 2, 3, 1}, {2.8666666f, 6.4f, 12.4f, 19.333334f, 26, 38}), 1e-6);
  expect_close(run_op("ResizeBilinearGrad", {grads, kSquares},
                      {{"half_pixel_centers", true}}),
               image({1, 2, 3, 1}, {4.9f, 9.9f, 12.7f, 20.9f, 27.9f, 28.7f}),
               1e-6);
  expect_close(run_op("ResizeNearestNeighborGrad",
                      {grads, Tensor::vector<int32_t>({2, 3})}),
               image({1, 2, 3, 1}, {12, 20, 13, 21, 25, 14}));
  expect_error(run_op("ResizeBilinearGrad",
                      {Tensor::make(DataType::kFloat, {2, 3, 5, 1}), kSquares}),
               Code::kInvalidArgument, "is not one of images");
}

TEST_CASE("ResizeNearestNeighborGrad gives zeros for unused pixels") {
  expect_close(run_op("ResizeNearestNeighborGrad",
                      {Tensor::make(DataType::kFloat, {1, 0, 5, 1}),
                       Tensor::vector<int32_t>({1, 2})}),
               image({1, 1, 2, 1}, {0, 0}));
}

TEST_CASE("images without a channel are refused") {
  const Tensor none = Tensor::make(DataType::kFloat, {1, 2, 2, 0});
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"})
    expect_error(run_op(op, {none, Tensor::vector<int32_t>({2, 2})}),
                 Code::kInvalidArgument, "without a channel");
}

// What TensorFlow 2.21 gives: float products, also for double images.
TEST_CASE("ResizeBilinearGrad computes its parts in float") {
  const Tensor grads = Tensor::of<float>({1, 1, 3, 1}, {0.1f, 0.7f, 0.3f});
  const float third = 2.0f / 3.0f;  // of the way from pixel to pixel
  const double left = double(0.1f) + double(0.7f * (1 - third)),
               right = double(0.7f * third) + double(0.3f * (1 - third)) +
                       double(0.3f * third);
  const auto image_grad =
      run_op("ResizeBilinearGrad",
             {grads, Tensor::make(DataType::kDouble, {1, 1, 2, 1})});
  REQUIRE_MESSAGE(image_grad.ok(), image_grad.status().to_string());
  expect_close((*image_grad)[0],
               Tensor::of<double>({1, 1, 2, 1}, {left, right}), 1e-9);
}

// What TensorFlow 2.21 gives, whose products are rounded before a half is
// taken off, and for which one pixel has no corners to align.
TEST_CASE("ResizeBilinearGrad computes positions in float") {
  const Tensor grads = Tensor::of<float>({1, 3, 1, 1}, {0.7f, 0.7f, 0.7f});
  const Tensor pixel = Tensor::make(DataType::kDouble, {1, 1, 1, 1});
  expect_close(run_op("ResizeBilinearGrad", {grads, pixel},
                      {{"half_pixel_centers", true}}),
               Tensor::of<double>({1, 1, 1, 1}, {2.0999999791383743}), 1e-12);
  expect_close(
      run_op("ResizeBilinearGrad", {grads, pixel}, {{"align_corners", true}}),
      Tensor::of<double>({1, 1, 1, 1}, {2.099999949336052}), 1e-12);
}

TEST_CASE("resizing refuses sizes without pixels, and attributes that clash") {
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
    expect_error(resized(op, 0, 2), Code::kInvalidArgument, "not positive");
    expect_error(resized(op, -1, 2), Code::kInvalidArgument, "not positive");
    expect_error(
        resized(op, 2, 2,
                {{"align_corners", true}, {"half_pixel_centers", true}}),
        Code::kInvalidArgument, "excludes");
    expect_error(run_op(op, {kSquares, Tensor::vector<int32_t>({1, 2, 3})}),
                 Code::kInvalidArgument, "not a vector of 2");
    expect_error(run_op(op, {Tensor::make(DataType::kFloat, {1, 0, 3, 1}),
                             Tensor::vector<int32_t>({1, 2})}),
                 Code::kInvalidArgument, "without a pixel");
    expect_close(run_op(op, {Tensor::make(DataType::kFloat, {0, 1, 3, 1}),
                             Tensor::vector<int32_t>({1, 2})}),
                 Tensor::make(DataType::kFloat, {0, 1, 2, 1}));
  }
}

}  // namespace
}  // namespace tagflow::devices
