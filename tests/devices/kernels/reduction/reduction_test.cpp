// Reductions along dimensions against the definition, element by element.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor axes(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

// Numbers that repeat with a long period.
Tensor counting(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kDouble, shape);
  int64_t i = 0;
  for (double& value : tensor.mutable_flat<double>())
    value = double(i++ % 101) - 50;
  return tensor;
}

// The sum over the dimensions whose flag is set, kept with size 1.
Tensor summed(const Tensor& in, const std::vector<bool>& reduced) {
  Shape shape;
  for (int i = 0; i < in.rank(); ++i)
    shape.add_dim(reduced[size_t(i)] ? 1 : in.dim(i));
  Tensor out = Tensor::make(DataType::kDouble, shape);
  for (double& value : out.mutable_flat<double>()) value = 0;
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int d = in.rank(); d-- > 0;) {
      if (!reduced[size_t(d)]) {
        at += rest % in.dim(d) * step;
        step *= in.dim(d);
      }
      rest /= in.dim(d);
    }
    out.mutable_data<double>()[at] += in.data<double>()[i];
  }
  return out;
}

TEST_CASE("Sum over any dimensions of any layout agrees with its definition") {
  // The last ones exceed a tile of columns, a block of a row, a leaf of rows
  // and what is reduced in parts, which may be of several kept rows.
  for (const Shape& shape :
       {Shape{3}, Shape{2, 3}, Shape{2, 3, 4}, Shape{3, 1, 2, 5},
        Shape{2, 3, 2, 3, 2}, Shape{70, 300}, Shape{9000}, Shape{3, 9000},
        Shape{5000, 3}, Shape{20, 7, 30}, Shape{2, 300000}, Shape{300000, 2},
        Shape{2, 700, 300}}) {
    const Tensor in = counting(shape);
    for (uint32_t mask = 0; mask < (1u << shape.rank()); ++mask) {
      std::vector<bool> reduced;
      std::vector<int32_t> list;
      for (int i = 0; i < shape.rank(); ++i) {
        reduced.push_back((mask >> i & 1) != 0);
        // Every other one counted from the end.
        if (reduced.back()) list.push_back(i % 2 ? i - shape.rank() : i);
      }
      INFO("shape ", shape.to_string(), " mask ", mask);
      const Tensor axes_tensor =
          Tensor::of<int32_t>({int64_t(list.size())}, list);
      expect_close(run_op("Sum", {in, axes_tensor}, {{"keep_dims", true}}),
                   summed(in, reduced));
    }
  }
}

TEST_CASE("reductions drop the reduced dimensions unless asked to keep them") {
  const Tensor in = counting({2, 3, 4});
  const auto plain = run_op("Sum", {in, axes({1})});
  REQUIRE(plain.ok());
  CHECK((*plain)[0].shape() == Shape{2, 4});
  const auto all = run_op("Sum", {in, axes({0, 1, 2})});
  REQUIRE(all.ok());
  CHECK((*all)[0].shape() == Shape{});
}

TEST_CASE("each reduction computes what its name says") {
  const Tensor in = Tensor::of<float>({2, 3}, {1, -2, 3, 4, 5, -6});
  const auto along_rows = [&](const char* op) {
    return run_op(op, {in, Tensor::scalar<int64_t>(-1)});
  };
  expect_close(along_rows("Sum"), Tensor::vector<float>({2, 3}));
  expect_close(along_rows("Mean"), Tensor::vector<float>({2 / 3.0f, 1}));
  expect_close(along_rows("Prod"), Tensor::vector<float>({-6, -120}));
  expect_close(along_rows("Max"), Tensor::vector<float>({3, 5}));
  expect_close(along_rows("Min"), Tensor::vector<float>({-2, -6}));
  expect_close(along_rows("EuclideanNorm"),
               Tensor::vector<float>({std::sqrt(14.0f), std::sqrt(77.0f)}));
  const Tensor flags =
      Tensor::of<bool>({3, 2}, {true, true, false, true, false, false});
  expect_close(run_op("All", {flags, axes({1})}),
               Tensor::vector<bool>({true, false, false}));
  expect_close(run_op("Any", {flags, axes({1})}),
               Tensor::vector<bool>({true, true, false}));
  expect_close(run_op("All", {flags, axes({0})}),
               Tensor::vector<bool>({false, false}));
}

TEST_CASE("integers wrap in sums and products but not in means") {
  const Tensor in = Tensor::vector<uint8_t>({100, 100, 100, 101});
  const auto reduced = [&](const char* op) {
    return run_op(op, {in, axes({0})});
  };
  expect_close(reduced("Sum"), Tensor::scalar<uint8_t>(145));
  expect_close(reduced("Mean"), Tensor::scalar<uint8_t>(100));
  expect_close(reduced("Prod"), Tensor::scalar<uint8_t>(64));
  expect_close(reduced("EuclideanNorm"), Tensor::scalar<uint8_t>(3));
  expect_close(run_op("Mean", {Tensor::vector<int32_t>({-1, -2}), axes({0})}),
               Tensor::scalar<int32_t>(-1));
  // The sum of the squares, 65536 * 65535, is negative as an int32.
  const Tensor large = Tensor::vector<int32_t>({46341, 0});
  expect_close(run_op("EuclideanNorm", {large, axes({0})}),
               Tensor::scalar<int32_t>(0));
}

TEST_CASE("16-bit floats are summed in float") {
  Tensor in = Tensor::make(DataType::kBFloat16, {1000});
  for (BFloat16& value : in.mutable_flat<BFloat16>()) value = BFloat16(1.0f);
  expect_close(run_op("Sum", {in, axes({0})}),
               Tensor::scalar(BFloat16(1000.0f)));
  const Tensor half = Tensor::vector<Half>(
      {Half(100.0f), Half(100.0f), Half(100.0f), Half(101.0f)});
  expect_close(run_op("Mean", {half, axes({0})}),
               Tensor::scalar(Half(100.25f)));
  expect_close(run_op("Prod", {half, axes({0})}), Tensor::scalar(Half(kInf)));
}

TEST_CASE("complex numbers reduce by their own arithmetic") {
  const Tensor in = Tensor::vector<Complex64>({{3, 4}, {0, 1}});
  expect_close(run_op("Sum", {in, axes({0})}), Tensor::scalar(Complex64(3, 5)));
  expect_close(run_op("Prod", {in, axes({0})}),
               Tensor::scalar(Complex64(-4, 3)));
  expect_close(run_op("Mean", {in, axes({0})}),
               Tensor::scalar(Complex64(1.5, 2.5)));
  expect_close(run_op("EuclideanNorm", {in, axes({})}),
               Tensor::vector<Complex64>({{5, 0}, {1, 0}}));
}

TEST_CASE("a reduction of nothing gives the neutral element") {
  const Tensor empty = Tensor::make(DataType::kFloat, {0, 2});
  const auto reduced = [&](const char* op) {
    return run_op(op, {empty, axes({0})});
  };
  expect_close(reduced("Sum"), Tensor::vector<float>({0, 0}));
  expect_close(reduced("Prod"), Tensor::vector<float>({1, 1}));
  expect_close(reduced("Mean"), Tensor::vector<float>({kNaN, kNaN}));
  expect_close(reduced("Max"), Tensor::vector<float>({-kInf, -kInf}));
  expect_close(reduced("Min"), Tensor::vector<float>({kInf, kInf}));
  expect_close(reduced("EuclideanNorm"), Tensor::vector<float>({0, 0}));
  expect_close(run_op("Sum", {empty, axes({1})}),
               Tensor::make(DataType::kFloat, {0}));
  const Tensor integers = Tensor::make(DataType::kInt32, {0});
  expect_close(run_op("Mean", {integers, axes({0})}),
               Tensor::scalar<int32_t>(0));
  expect_close(run_op("Max", {integers, axes({0})}),
               Tensor::scalar(std::numeric_limits<int32_t>::min()));
  const Tensor flags = Tensor::make(DataType::kBool, {0});
  expect_close(run_op("All", {flags, axes({0})}), Tensor::scalar(true));
  expect_close(run_op("Any", {flags, axes({0})}), Tensor::scalar(false));
}

TEST_CASE("reductions refuse a result too large to be a tensor") {
  constexpr int64_t kMany = int64_t{1} << 32;
  const Tensor empty = Tensor::make(DataType::kBool, {kMany, 0, kMany});
  for (const char* op : {"All", "Any"})
    expect_error(run_op(op, {empty, axes({1})}), Code::kInvalidArgument,
                 "[shape] the number of elements of [4294967296,4294967296] "
                 "overflows");
  expect_close(run_op("All", {empty, axes({0, 1, 2})}), Tensor::scalar(true));
}

TEST_CASE("reductions over no dimensions treat each element by itself") {
  const Tensor in = Tensor::of<float>({1, 2}, {-3, 4});
  expect_close(run_op("Sum", {in, axes({})}), in);
  expect_close(run_op("EuclideanNorm", {in, axes({})}),
               Tensor::of<float>({1, 2}, {3, 4}));
  expect_close(run_op("Mean", {in, axes({0})}), Tensor::vector<float>({-3, 4}));
}

TEST_CASE("NaN wins in Max and Min wherever it stands") {
  for (int at = 0; at < 70; at += 23) {
    Tensor in = Tensor::make(DataType::kFloat, {70});
    for (float& value : in.mutable_flat<float>()) value = 1;
    in.mutable_data<float>()[at] = kNaN;
    expect_close(run_op("Max", {in, axes({0})}), Tensor::scalar(kNaN));
    expect_close(run_op("Min", {in, axes({0})}), Tensor::scalar(kNaN));
    const Tensor column = in.reshaped({70, 1}).value();
    expect_close(run_op("Max", {column, axes({0})}),
                 Tensor::vector<float>({kNaN}));
  }
}

TEST_CASE("the error of a float sum grows slowly") {
  constexpr int64_t kCount = 1 << 20;
  Tensor in = Tensor::make(DataType::kFloat, {kCount});
  for (float& value : in.mutable_flat<float>()) value = 0.1f;
  const double exact = double(0.1f) * kCount;
  for (const Shape& shape : {Shape{kCount}, Shape{kCount, 1},
                             Shape{kCount / 4, 4}, Shape{1024, 1024}}) {
    const auto sum = run_op("Sum", {in.reshaped(shape).value(), axes({0})});
    REQUIRE(sum.ok());
    const double share = exact / double((*sum)[0].num_elements());
    for (float value : (*sum)[0].flat<float>())
      CHECK(std::abs(value - share) < share * 1e-6);
  }
}

TEST_CASE("reductions refuse dimensions that do not exist or come twice") {
  const Tensor in = counting({2, 3});
  expect_error(run_op("Sum", {in, axes({2})}), Code::kInvalidArgument,
               "axis 2");
  expect_error(run_op("Sum", {in, axes({-3})}), Code::kInvalidArgument,
               "axis -3");
  expect_error(run_op("Sum", {in, axes({0, 0})}), Code::kInvalidArgument,
               "twice");
  expect_error(run_op("Sum", {in, axes({0, -2})}), Code::kInvalidArgument,
               "twice");
  expect_error(run_op("Sum", {Tensor::scalar(1.0), axes({0})}),
               Code::kInvalidArgument, "axis 0");
}

TEST_CASE("half the sum of squares is the L2 loss") {
  expect_close(run_op("L2Loss", {Tensor::of<float>({2, 1}, {1, 2})}),
               Tensor::scalar(2.5f));
  expect_close(run_op("L2Loss", {Tensor::make(DataType::kFloat, {0, 3})}),
               Tensor::scalar(0.0f));
  expect_close(run_op("L2Loss", {Tensor::scalar(Half(4.0f))}),
               Tensor::scalar(Half(8.0f)));
}

}  // namespace
}  // namespace tagflow::devices
