#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "devices/kernel_registry.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

Tensor iota(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  std::iota(tensor.mutable_data<float>(),
            tensor.mutable_data<float>() + shape.num_elements(), 0.0f);
  return tensor;
}

// x - y by numpy's rules, element by element.
Tensor reference_difference(const Tensor& x, const Tensor& y,
                            const Shape& shape) {
  Tensor out = Tensor::make(DataType::kFloat, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const auto value = [&](const Tensor& operand) {
      int64_t rest = i, offset = 0, stride = 1;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        const int64_t at = rest % shape.dim(d);
        rest /= shape.dim(d);
        const int own = d - (shape.rank() - operand.rank());
        if (own < 0) continue;
        if (operand.dim(own) != 1) offset += at * stride;
        stride *= operand.dim(own);
      }
      return operand.data<float>()[offset];
    };
    out.mutable_data<float>()[i] = value(x) - value(y);
  }
  return out;
}

}  // namespace

TEST_CASE("scalars, vectors and matrices are added") {
  expect_close(run_op("AddV2", {Tensor::scalar(1.5f), Tensor::scalar(2.0f)}),
               Tensor::scalar(3.5f));
  expect_close(run_op("AddV2", {Tensor::vector<int32_t>({1, 2}),
                                Tensor::scalar<int32_t>(10)}),
               Tensor::vector<int32_t>({11, 12}));
  expect_close(run_op("Sub", {Tensor::scalar<int32_t>(10),
                              Tensor::vector<int32_t>({1, 2})}),
               Tensor::vector<int32_t>({9, 8}));
}

TEST_CASE("element-wise ops broadcast operands of any ranks") {
  const std::pair<Shape, Shape> pairs[] = {
      {{4, 3}, {3}},    {{3}, {4, 3}},
      {{4, 1}, {1, 5}}, {{2, 1, 3, 1}, {4, 1, 5}},
      {{1, 1}, {3}},    {{2, 3, 4}, {1, 3, 1}},
      {{7, 1, 1}, {1}}, {{100, 3}, {100, 1}}};
  for (const auto& [a, b] : pairs) {
    const Tensor x = iota(a), y = iota(b);
    CAPTURE(x.describe());
    CAPTURE(y.describe());
    const auto result = run_op("Sub", {x, y});
    REQUIRE(result.ok());
    expect_close((*result)[0],
                 reference_difference(x, y, (*result)[0].shape()));
  }
}

TEST_CASE("element-wise ops split large operands over workers") {
  const Tensor x = iota({300, 400});
  for (const Shape& other :
       {Shape{300, 400}, Shape{400}, Shape{300, 1}, Shape{}}) {
    const Tensor y = iota(other);
    expect_close(run_op("Sub", {x, y}), reference_difference(x, y, {300, 400}));
  }
}

TEST_CASE("element-wise ops of empty operands give empty results") {
  const Tensor empty = Tensor::make(DataType::kFloat, {0, 3});
  expect_close(run_op("Mul", {empty, iota({3})}), empty);
  expect_close(run_op("Mul", {iota({1, 1}), empty}), empty);
  expect_close(run_op("Exp", {empty}), empty);
  expect_close(run_op("FloorDiv", {Tensor::of<int32_t>({0}, {}),
                                   Tensor::scalar<int32_t>(0)}),
               Tensor::of<int32_t>({0}, {}));
}

TEST_CASE("shapes that cannot be broadcast are refused by name") {
  expect_error(run_op("AddV2", {iota({2}), iota({3})}), Code::kInvalidArgument,
               "[AddV2] incompatible shapes: [2] and [3]");
  expect_error(run_op("Less", {iota({2, 3}), iota({2, 4})}),
               Code::kInvalidArgument,
               "[Less] incompatible shapes: [2,3] and [2,4]");
  expect_error(run_op("Mul", {Tensor::make(DataType::kFloat, {0}), iota({3})}),
               Code::kInvalidArgument, "incompatible shapes: [0] and [3]");
}

TEST_CASE("element-wise ops of integers wrap around") {
  const int32_t most = std::numeric_limits<int32_t>::max();
  const int32_t least = std::numeric_limits<int32_t>::min();
  expect_close(run_op("AddV2", {Tensor::scalar(most), Tensor::scalar(1)}),
               Tensor::scalar(least));
  expect_close(run_op("Neg", {Tensor::scalar(least)}), Tensor::scalar(least));
  expect_close(run_op("Abs", {Tensor::scalar(least)}), Tensor::scalar(least));
  expect_close(run_op("Mul", {Tensor::scalar<uint16_t>(65535),
                              Tensor::scalar<uint16_t>(65535)}),
               Tensor::scalar<uint16_t>(1));
  expect_close(run_op("Square", {Tensor::scalar<int8_t>(100)}),
               Tensor::scalar<int8_t>(16));
}

TEST_CASE("rounding leaves integers as they are") {
  expect_close(run_op("Round", {Tensor::vector<int32_t>({-3, 0, 7})}),
               Tensor::vector<int32_t>({-3, 0, 7}));
}

TEST_CASE("the error function of an infinity is one") {
  expect_close(run_op("Erf", {Tensor::vector<double>({-HUGE_VAL, HUGE_VAL})}),
               Tensor::vector<double>({-1, 1}));
}

TEST_CASE("the complement of the error function keeps its digits far out") {
  std::vector<float> x;
  for (int i = -1300; i <= 1300; ++i) x.push_back(float(i) * 0.01f);
  const auto y = run_op("Erfc", {Tensor::of<float>({int64_t(x.size())},
                                                   std::span<const float>(x))});
  REQUIRE_MESSAGE(y.ok(), y.status().to_string());
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    const double expected = std::erfc(double(x[i]));
    const double off = std::abs((*y)[0].data<float>()[i] - expected);
    CHECK(off <= 5e-7 * expected + 1e-44);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_close(
      run_op("Erfc", {Tensor::vector<float>({-HUGE_VALF, 0, HUGE_VALF, nan})}),
      Tensor::vector<float>({2, 1, 0, nan}));
}

TEST_CASE("strings are concatenated") {
  const Tensor x = Tensor::of<std::string>({2}, {"a", ""});
  expect_close(run_op("Add", {x, Tensor::scalar("b")}),
               Tensor::of<std::string>({2}, {"ab", "b"}));
  expect_close(run_op("Add", {x, Tensor::of<std::string>({2, 1}, {"1", "2"})}),
               Tensor::of<std::string>({2, 2}, {"a1", "1", "a2", "2"}));
}

TEST_CASE("an unshared operand is overwritten in place") {
  graph::Graph graph;
  const auto source =
      graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  REQUIRE(source.ok());
  const graph::Endpoint inputs[] = {{*source, 0}, {*source, 0}};
  const auto node = graph.add("sum", "AddV2", inputs);
  REQUIRE(node.ok());
  const auto kernel = KernelRegistry::global().make(**node, "CPU");
  REQUIRE(kernel.ok());
  Tensor operands[] = {iota({100}), iota({100})};
  const void* first = operands[0].raw();
  Tensor outputs[1];
  const StepInfo step;
  const Tag tag;
  KernelContext context(*node, operands, outputs, &step, &tag);
  REQUIRE((*kernel)->compute(context).ok());
  CHECK(outputs[0].raw() == first);
  CHECK(outputs[0].data<float>()[99] == 198);
}

TEST_CASE("a sum of many adds them all") {
  expect_close(run_op("AddN", {iota({3}), iota({3}), iota({3})}),
               Tensor::vector<float>({0, 3, 6}));
  expect_close(run_op("AddN", {Tensor::scalar(1), Tensor::scalar(2)}),
               Tensor::scalar(3));
  expect_close(run_op("AddN", {iota({2})}), iota({2}));
  expect_close(run_op("AddN", {iota({5000}), iota({5000})}), [] {
    Tensor twice = iota({5000});
    for (float& x : twice.mutable_flat<float>()) x *= 2;
    return twice;
  }());
  expect_error(run_op("AddN", {iota({2}), iota({3})}), Code::kInvalidArgument,
               "[AddN] inputs 0 and 1 have different shapes: float[2]");
}

}  // namespace tagflow::devices
