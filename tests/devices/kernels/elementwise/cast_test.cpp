#include <doctest/doctest.h>

#include <numeric>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

AttrMap to(DataType dtype) { return {{"DstT", dtype}}; }

}  // namespace

TEST_CASE("casting rounds to nearest even") {
  const Tensor x = Tensor::vector<float>({1 + 0x1p-11f, 1 + 3 * 0x1p-11f});
  expect_close(run_op("Cast", {x}, to(DataType::kHalf)),
               Tensor::vector<Half>({Half(1.0f), Half(1 + 0x1p-9f)}), 1e-9);
  const Tensor y = Tensor::vector<float>({1 + 0x1p-8f, 1 + 3 * 0x1p-8f});
  expect_close(
      run_op("Cast", {y}, to(DataType::kBFloat16)),
      Tensor::vector<BFloat16>({BFloat16(1.0f), BFloat16(1 + 0x1p-6f)}), 1e-9);
}

TEST_CASE("Cast to half gives infinity for numbers that are too large") {
  expect_close(run_op("Cast", {Tensor::scalar(70000.0f)}, to(DataType::kHalf)),
               Tensor::scalar(Half(HUGE_VALF)));
}

TEST_CASE("complex numbers are cast by their real part") {
  const Tensor x = Tensor::vector<Complex64>({{1.5f, 2}, {0, 3}});
  expect_close(run_op("Cast", {x}, to(DataType::kInt32)),
               Tensor::vector<int32_t>({1, 0}));
  expect_close(run_op("Cast", {x}, to(DataType::kBool)),
               Tensor::vector<bool>({true, false}));
  expect_close(run_op("Cast", {x}, to(DataType::kComplex128)),
               Tensor::vector<Complex128>({{1.5, 2}, {0, 3}}));
  expect_close(
      run_op("Cast", {Tensor::scalar(Half(2.5f))}, to(DataType::kComplex128)),
      Tensor::scalar(Complex128(2.5, 0)));
}

// run_op() compares its results with those of the kernel's shortcut.
TEST_CASE("a scalar in its token is cast as an element of a tensor is") {
  for (const DataType type :
       {DataType::kBool, DataType::kUInt8, DataType::kInt64, DataType::kFloat,
        DataType::kHalf, DataType::kComplex64}) {
    for (const float number : {0.0f, 2.0f, -7.5f, 3e9f}) {
      const auto scalar = run_op("Cast", {Tensor::scalar(number)}, to(type));
      const auto vector =
          run_op("Cast", {Tensor::vector<float>({number})}, to(type));
      REQUIRE(vector.ok());
      expect_close(scalar, *(*vector)[0].reshaped(Shape()));
      const auto back = run_op("Cast", {(*scalar)[0]}, to(DataType::kDouble));
      const auto vector_back =
          run_op("Cast", {(*vector)[0]}, to(DataType::kDouble));
      REQUIRE(vector_back.ok());
      expect_close(back, *(*vector_back)[0].reshaped(Shape()));
    }
  }
}

TEST_CASE("a large cast through a wider type is made in pieces") {
  Tensor x = Tensor::make(DataType::kInt32, {3000});
  std::iota(x.mutable_data<int32_t>(), x.mutable_data<int32_t>() + 3000, -1500);
  const auto half = run_op("Cast", {x}, to(DataType::kHalf));
  REQUIRE(half.ok());
  expect_close(run_op("Cast", {(*half)[0]}, to(DataType::kInt32)), x);
}

TEST_CASE("a cast to the same type changes nothing") {
  const Tensor x = Tensor::of<std::string>({1}, {"a"});
  expect_close(run_op("Cast", {x}, to(DataType::kString)), x);
}

TEST_CASE("strings are not cast to numbers") {
  expect_error(run_op("Cast", {Tensor::scalar("1")}, to(DataType::kInt32)),
               Code::kUnimplemented, "there is no cast from string to int32");
}

TEST_CASE("Bitcast reads the bits as another type") {
  expect_close(run_op("Bitcast", {Tensor::vector<float>({1, 2})},
                      {{"type", DataType::kInt32}}),
               Tensor::vector<int32_t>({0x3f800000, 0x40000000}));
  expect_close(run_op("Bitcast", {Tensor::vector<float>({1})},
                      {{"type", DataType::kUInt8}}),
               Tensor::of<uint8_t>({1, 4}, {0, 0, 0x80, 0x3f}));
  expect_close(run_op("Bitcast", {Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4})},
                      {{"type", DataType::kInt64}}),
               Tensor::vector<int64_t>({8589934593, 17179869187}));
}

TEST_CASE("Bitcast refuses bits that do not make whole elements") {
  expect_error(run_op("Bitcast", {Tensor::vector<int32_t>({1, 2, 3})},
                      {{"type", DataType::kInt64}}),
               Code::kInvalidArgument, "its last dimension must be 2");
  expect_error(
      run_op("Bitcast", {Tensor::scalar(1)}, {{"type", DataType::kInt64}}),
      Code::kInvalidArgument, "int32[] cannot be read as int64");
}

TEST_CASE("ToBool is true for a nonzero scalar, or for any elements") {
  const auto truth = [](Tensor x) { return run_op("ToBool", {x}); };
  expect_close(truth(Tensor::scalar(0.0f)), Tensor::scalar(false));
  expect_close(truth(Tensor::scalar(-1)), Tensor::scalar(true));
  expect_close(truth(Tensor::scalar("")), Tensor::scalar(false));
  expect_close(truth(Tensor::scalar("a")), Tensor::scalar(true));
  expect_close(truth(Tensor::vector<float>({0})), Tensor::scalar(true));
  expect_close(truth(Tensor::of<float>({0}, {})), Tensor::scalar(false));
}

}  // namespace tagflow::devices
