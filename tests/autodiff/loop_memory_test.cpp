// The memory of gradients of loops, by what the device allocated, and the
// number of their nodes.
#include <doctest/doctest.h>

#include <cmath>

#include "autodiff/recompute.h"
#include "devices/device.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/programs.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::less_than;

namespace {

constexpr double kMiB = 1 << 20;
constexpr int64_t kWindow = 10;

// A loss of w, a vector, after n trips.
using Loss =
    std::function<Output(const Scope&, const Output& n, const Output& w)>;

// The peak of a run of the gradient, in bytes. Without workers given: as many
// as there are cores.
double peak_of(const Loss& loss, int64_t elements, int trips, int workers = 0) {
  Graph graph;
  const Scope s(graph);
  const Output n =
      ops::placeholder(s, DataType::kInt32, PartialShape::scalar());
  const Output value =
      ops::placeholder(s, DataType::kFloat, PartialShape::scalar());
  const Output w = elements == 0 ? value : ops::fill(s, {elements}, value);
  const Output grad = dense_gradients(s, {loss(s, n, w)}, {w})[0];
  const Output result = ops::reduce_sum(s, grad);
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  actors::SessionOptions options;
  options.workers = workers;
  // Engines share devices of the same text, and so their peaks.
  static int calls = 0;
  options.devices = fmt::format("cpu:1:memory={}MiB", 8192 + ++calls);
  auto session = actors::Session::create(options);
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  REQUIRE((*session)->extend(graph).ok());
  const auto run = (*session)->run({{n.name(), Tensor::scalar(int32_t(trips))},
                                    {value.name(), Tensor::scalar(0.5f)}},
                                   {result.name()});
  REQUIRE_MESSAGE(run.ok(), run.status().to_string());
  return double((*session)->devices()[0]->memory().peak);
}

// s += part(i) from 0 on, n times.
Output sum_over(
    const Scope& s, const Output& n,
    const std::function<Output(const Scope&, const Output& i)>& part) {
  return while_loop(
      s, less_than(n),
      [&](const Scope& l, const Outputs& v) -> Outputs {
        return {ops::add(l, v[0], 1), ops::add(l, v[1], part(l, v[0]))};
      },
      {0, 0.0f}, {.parallel_iterations = kWindow})[1];
}

Loss sines(const Save& save) {
  return [save](const Scope& s, const Output& n, const Output& w) {
    return while_loop(s, less_than(n),
                      [](const Scope& l, const Outputs& v) -> Outputs {
                        return {ops::add(l, v[0], 1), ops::sin(l, v[1])};
                      },
                      {0, w}, {.save = save})[1];
  };
}

}  // namespace

TEST_CASE("a loop constant's gradient takes no more memory for more trips") {
  const Loss loss = [](const Scope& s, const Output& n, const Output& w) {
    return sum_over(s, n, [&](const Scope& l, const Output& i) -> Output {
      return ops::mul(l, ops::cast(l, i, DataType::kFloat),
                      ops::reduce_sum(l, ops::square(l, w)));
    });
  };
  const int64_t elements = int64_t(kMiB) / 4;
  CHECK(peak_of(loss, elements, 300) <=
        peak_of(loss, elements, 10) + double(kWindow + 2) * kMiB);
}

TEST_CASE("tensors of a shape that changes are not kept for their shape") {
  const Loss loss = [](const Scope& s, const Output& n, const Output& w) {
    return sum_over(s, n, [&](const Scope& l, const Output& i) -> Output {
      const Output size = ops::reshape(l, ops::sub(l, 262144, i), {1});
      return ops::reduce_mean(
          l, ops::fill(l, size,
                       ops::mul(l, w, ops::cast(l, i, DataType::kFloat))));
    });
  };
  CHECK(peak_of(loss, 0, 1000, 1) <= peak_of(loss, 0, 10, 1) + kMiB);
  // How many tensors several workers have at a time differs from run to run,
  // but the window bounds it.
  CHECK(peak_of(loss, 0, 1000, 4) <= double(kWindow + 2) * kMiB);
}

TEST_CASE("lists and rows of loops take memory in proportion to the trips") {
  const Loss pushes = [](const Scope& s, const Output& n, const Output& w) {
    const Output any = ops::constant(s, -1);
    const Output list = s.op("EmptyTensorList", {any, any},
                             {{"element_dtype", DataType::kFloat}});
    const Output last = while_loop(
        s, less_than(n),
        [&](const Scope& l, const Outputs& v) -> Outputs {
          return {ops::add(l, v[0], 1),
                  l.op("TensorListPushBack", {v[1], ops::mul(l, w, w)})};
        },
        {0, list})[1];
    return ops::reduce_sum(s, s.op("TensorListStack", {last, any},
                                   {{"element_dtype", DataType::kFloat}}));
  };
  const Loss gathers = [](const Scope& s, const Output& n, const Output& w) {
    const Output table = ops::reshape(s, w, {-1, 64});
    return sum_over(s, n, [&](const Scope& l, const Output& i) -> Output {
      return ops::reduce_sum(
          l, ops::square(l, ops::gather(l, table, ops::floor_mod(l, i, 4))));
    });
  };
  for (const Loss& loss : {pushes, gathers})
    CHECK(peak_of(loss, 256, 4000) <= 2.3 * peak_of(loss, 256, 2000));
}

TEST_CASE("every k-th trip takes n / k + k values, and halves the logarithm") {
  constexpr int kTrips = 2500;
  constexpr int64_t kBytes = 64 << 10;
  const auto values_of = [](const Save& save) {
    return peak_of(sines(save), kBytes / 4, kTrips) / double(kBytes);
  };
  CHECK(values_of({}) > kTrips);
  CHECK(values_of(Save::every(50)) <= 3 * 50);
  CHECK(values_of(Save::log()) <= 3 * std::log2(kTrips));
}

TEST_CASE("a chain of recomputed blocks takes their inputs and one of them") {
  constexpr int kBlocks = 16, kOps = 16;
  constexpr int64_t kBytes = 64 << 10;
  const auto values_of = [](bool again) {
    const Loss loss = [&](const Scope& s, const Output& n, const Output& w) {
      const RecomputeFn block = [](const Scope& in,
                                   const Outputs& a) -> Outputs {
        Output y = a[0];
        for (int i = 0; i < kOps; ++i) y = ops::sin(in, y);
        return y;
      };
      Output y = ops::mul(s, w, ops::cast(s, n, DataType::kFloat));
      for (int i = 0; i < kBlocks; ++i)
        y = again ? recompute(s, block, {y})[0] : block(s, {y})[0];
      return y;
    };
    return peak_of(loss, kBytes / 4, 1) / double(kBytes);
  };
  CHECK(values_of(false) >= kBlocks * kOps);
  CHECK(values_of(true) <= kBlocks + kOps + 8);
}

TEST_CASE("loops nested 4 deep grow by 4 per order at the most") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s, DataType::kFloat, PartialShape::scalar());
  const Output w =
      ops::placeholder(s, DataType::kFloat, PartialShape::scalar());
  const std::function<Output(const Scope&, const Output&, int)> nested =
      [&](const Scope& in, const Output& v, int depth) -> Output {
    if (depth == 0) return ops::sin(in, ops::mul(in, v, w));
    return while_loop(
        in,
        [](const Scope& l, const Outputs& a) { return ops::less(l, a[0], 2); },
        [&](const Scope& l, const Outputs& a) -> Outputs {
          return {ops::add(l, a[0], 1), nested(l, a[1], depth - 1)};
        },
        {0, v})[1];
  };
  Output y = nested(s, x, 4);
  const double forward = double(graph.size());
  for (int order = 1; order <= 3; ++order) {
    y = dense_gradients(s, {y}, {x})[0];
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    CAPTURE(order);
    CHECK(double(graph.size()) <= std::pow(4, order) * forward);
  }
}
