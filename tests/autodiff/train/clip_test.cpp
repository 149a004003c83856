// Clipping, of dense gradients and of rows.
#include "autodiff/train/clip.h"

#include <limits>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

struct Fixture {
  Graph graph;
  Scope s{graph};
  // Of length 5.
  const Gradient dense{ops::constant(s, Tensor::vector<double>({3, -4}))};
  // Row 2 is [8, -4], row 0 [1, 0]: of length 9.
  const Gradient sparse{
      ops::constant(s, Tensor::of<double>({3, 2}, {5, -6, 1, 0, 3, 2})),
      ops::constant(s, Tensor::vector<int32_t>({2, 0, 2}))};
  const std::vector<Gradient> all{dense, {}, sparse};

  Doubles value(const Output& tensor) {
    return doubles_of(evaluate(s, {tensor})[0]);
  }
  // Of four rows.
  Doubles rows(const Gradient& gradient) {
    REQUIRE(gradient.is_sparse());
    return value(
        ops::unsorted_segment_sum(s, gradient.values, gradient.indices, 4));
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "clipping: elements are kept within limits") {
  const auto clipped = clip_by_value(s, all, -2.5, 5);
  REQUIRE(clipped.size() == 3);
  CHECK_FALSE(clipped[1].valid());
  check_close(value(clipped[0].values), {3, -2.5});
  check_close(rows(clipped[2]), {1, 0, 0, 0, 5, -2.5, 0, 0});
}

TEST_CASE_FIXTURE(Fixture,
                  "clipping: each gradient is shortened by its own norm") {
  const auto clipped = clip_by_norm(s, all, 4.5);
  REQUIRE(clipped.size() == 3);
  CHECK_FALSE(clipped[1].valid());
  check_close(value(clipped[0].values), {2.7, -3.6});
  check_close(rows(clipped[2]), {0.5, 0, 0, 0, 4, -2, 0, 0});
  const auto same = clip_by_norm(s, {dense}, 6);
  check_close(value(same[0].values), {3, -4});
}

TEST_CASE_FIXTURE(Fixture,
                  "clipping: all gradients are shortened by one norm") {
  const double norm = std::sqrt(25 + 81);
  check_close(value(global_norm(s, all)), {norm});
  const auto clipped = clip_by_global_norm(s, all, 2);
  REQUIRE(clipped.gradients.size() == 3);
  CHECK_FALSE(clipped.gradients[1].valid());
  check_close(value(clipped.norm), {norm});
  check_close(value(clipped.gradients[0].values), {6 / norm, -8 / norm});
  check_close(rows(clipped.gradients[2]),
              {2 / norm, 0, 0, 0, 16 / norm, -8 / norm, 0, 0});
  const auto same = clip_by_global_norm(s, all, 11);
  check_close(rows(same.gradients[2]), {1, 0, 0, 0, 8, -4, 0, 0});
}

TEST_CASE_FIXTURE(Fixture,
                  "clipping: a norm of several types is of the widest") {
  const Gradient half{
      ops::cast(s, ops::constant(s, {300.0f, 400.0f}), DataType::kHalf)};
  // 500^2 is more than a half can hold.
  const Output norm = global_norm(s, {half});
  CHECK(norm.dtype() == DataType::kFloat);
  check_close(value(norm), {500});
  CHECK(global_norm(s, {half, dense}).dtype() == DataType::kDouble);
  const auto clipped = clip_by_norm(s, {half}, 5);
  CHECK(clipped[0].values.dtype() == DataType::kHalf);
  check_close(value(ops::cast(s, clipped[0].values, DataType::kFloat)), {3, 4},
              1e-2);
}

TEST_CASE_FIXTURE(Fixture,
                  "clipping: a gradient that is not finite is not hidden") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Gradient bad{ops::constant(s, Tensor::vector<double>({1, kInfinity}))};
  const auto clipped = clip_by_global_norm(s, {bad, dense}, 1);
  for (const Gradient& gradient : clipped.gradients)
    for (const double element : value(gradient.values))
      CHECK(std::isnan(element));
}

TEST_CASE_FIXTURE(
    Fixture, "clipping leaves zero gradients, and a norm of none is zero") {
  const Gradient zero{ops::constant(s, Tensor::vector<double>({0, 0}))};
  const auto clipped = clip_by_norm(s, {zero}, 1);
  CHECK(value(clipped[0].values) == Doubles{0, 0});
  CHECK(value(global_norm(s, {Gradient()})) == Doubles{0});
}

TEST_CASE_FIXTURE(Fixture,
                  "clipping: a norm has a derivative, also where it is zero") {
  const Output x = ops::constant(s, Tensor::vector<double>({3, -4}));
  const Output zero = ops::constant(s, Tensor::vector<double>({0, 0}));
  const Outputs slopes = dense_gradients(
      s, {global_norm(s, {{x}}), global_norm(s, {{zero}})}, {x, zero});
  check_close(value(slopes[0]), {0.6, -0.8});
  CHECK(value(slopes[1]) == Doubles{0, 0});
}
