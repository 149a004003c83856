#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

const Tensor kTwo = Tensor::vector<float>({1, 2});
const Tensor kThree = Tensor::vector<float>({1, 2, 3});

}  // namespace

TEST_CASE("strings and bools are compared") {
  expect_close(run_op("Equal", {Tensor::of<std::string>({2}, {"a", "b"}),
                                Tensor::scalar("a")}),
               Tensor::vector<bool>({true, false}));
  expect_close(run_op("NotEqual", {Tensor::vector<bool>({true, false}),
                                   Tensor::scalar(true)}),
               Tensor::vector<bool>({false, true}));
}

TEST_CASE("quantized values are equal if their bytes are") {
  const auto quantized = [](std::initializer_list<uint8_t> values) {
    return Tensor::vector<uint8_t>(values).with_dtype(DataType::kQUInt8);
  };
  expect_close(run_op("Equal", {quantized({1, 200}), quantized({1, 2})}),
               Tensor::vector<bool>({true, false}));
}

TEST_CASE("Equal takes shapes that do not fit as unequal, if asked to") {
  expect_error(run_op("Equal", {kTwo, kThree}), Code::kInvalidArgument,
               "[Equal] incompatible shapes: [2] and [3]");
  const AttrMap lenient{{"incompatible_shape_error", false}};
  expect_close(run_op("Equal", {kTwo, kThree}, lenient), Tensor::scalar(false));
  expect_close(run_op("NotEqual", {kTwo, kThree}, lenient),
               Tensor::scalar(true));
  expect_close(run_op("Equal", {kTwo, kTwo}, lenient),
               Tensor::vector<bool>({true, true}));
  expect_close(run_op("Equal", {Tensor::scalar(1), Tensor::scalar(1)}, lenient),
               Tensor::scalar(true));
}

TEST_CASE("approximate equality has a tolerance") {
  const Tensor near = Tensor::vector<float>({1.05f, 2.2f});
  expect_close(run_op("ApproximateEqual", {kTwo, near}, {{"tolerance", 0.1f}}),
               Tensor::vector<bool>({true, false}));
  expect_error(run_op("ApproximateEqual", {kTwo, kThree}),
               Code::kInvalidArgument,
               "the inputs must have one shape, not float[2] and float[3]");
}

TEST_CASE("LeftShift and RightShift are clamped to the number of bits") {
  expect_close(run_op("LeftShift", {Tensor::vector<int32_t>({1, 1, -1, 1}),
                                    Tensor::vector<int32_t>({31, 32, 2, -1})}),
               Tensor::vector<int32_t>({INT32_MIN, INT32_MIN, -4, 1}));
  expect_close(run_op("RightShift", {Tensor::vector<int32_t>({-8, 8, -8, 8}),
                                     Tensor::vector<int32_t>({1, 32, 40, -1})}),
               Tensor::vector<int32_t>({-4, 0, -1, 8}));
  expect_close(run_op("LeftShift", {Tensor::vector<uint8_t>({1, 3}),
                                    Tensor::vector<uint8_t>({8, 100})}),
               Tensor::vector<uint8_t>({128, 128}));
}

}  // namespace tagflow::devices
