#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

void check_scan(const char* op, int axis, const Tensor& x,
                CheckOptions options = {}, int line = __builtin_LINE()) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      check_gradients(
          op_with(op, {axis}, {{"exclusive", exclusive}, {"reverse", reverse}}),
          {x}, options, line);
}

}  // namespace

TEST_CASE("Cumsum has gradients in every direction") {
  check_scan("Cumsum", 0, values({3, 2}));
  check_scan("Cumsum", -1, values({2, 3}));
  check_gradients(op_with("Cumsum", {0}), {complex_values({3})});
}

TEST_CASE("Cumprod has gradients in every direction") {
  check_scan("Cumprod", 0, values({3, 2}, 0.5, 1.5));
  check_scan("Cumprod", -1, values({2, 4}, -1.5, -0.5));
  check_gradients(op_with("Cumprod", {0}), {complex_values({3})});
}

TEST_CASE("Cumprod has gradients at factors of zero") {
  check_scan("Cumprod", 1,
             Tensor::of<double>({3, 4}, {2, 0, 3, 4, 0, 5, 2, 0, 2, 3, 0, 0}));
  check_scan("Cumprod", 0, Tensor::vector<double>({0, 2, 0, 3, 0}));
  check_scan("Cumprod", 0, Tensor::vector<double>({2, 0, 0, 3}),
             {.order = 3, .tolerance = 1e-4});
  check_gradients(op_with("Cumprod", {0}),
                  {Tensor::vector<double>({0, 2, 0, 0, 0})},
                  {.order = 4, .step = 0.1, .unknown_shapes = false});
}

// Of the exclusive ones, the sum of nothing is minus infinity.
TEST_CASE("CumulativeLogsumexp has gradients in every direction") {
  const auto scan = [](bool exclusive, bool reverse) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      const Output y = s.op("CumulativeLogsumexp", {x[0], 1},
                            {{"exclusive", exclusive}, {"reverse", reverse}});
      return ops::select(s, ops::is_finite(s, y), y, 0);
    };
  };
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      check_gradients(scan(exclusive, reverse), {values({2, 4}, -2, 2)},
                      {.order = 3, .tolerance = 1e-5});
}

TEST_CASE("CumulativeLogsumexp has gradients that do not overflow") {
  const auto grads = gradients_of(op_with("CumulativeLogsumexp", {0}),
                                  {Tensor::vector<float>({-200, 0, 150})});
  const auto grad = grads[0].flat<float>();
  CHECK(grad[0] == doctest::Approx(1));
  CHECK(grad[1] == doctest::Approx(1));
  CHECK(grad[2] == doctest::Approx(1));
}

TEST_CASE("CumulativeLogsumexp has a second gradient beside a zero first one") {
  // Only the last sum counts: the gradients of the others are zero.
  check_gradients(
      [](const graph::Scope& s, const graph::Outputs& x) {
        const Output y = s.op("CumulativeLogsumexp", {x[0], 0});
        return ops::mul(s, y, Tensor::vector<double>({0, 0, 1}));
      },
      {values({3})});
}

TEST_CASE("scans in a loop save what they need of each iteration") {
  for (const char* op : {"Cumsum", "Cumprod", "CumulativeLogsumexp"}) {
    CAPTURE(op);
    check_gradients(
        repeated([op](const graph::Scope& s, const graph::Outputs& x) {
          return ops::sin(s, s.op(op, {x[0], 1}));
        }),
        {values({2, 3}, 0.5, 1.5)});
  }
}
