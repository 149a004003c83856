#include <doctest/doctest.h>

#include <cmath>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "graph/float16.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

void check_special(const char* op, double low, double high,
                   int line = __builtin_LINE()) {
  check_gradients(op_of(op), {values({2, 3}, low, high)}, {}, line);
}

// Of two operands, by the second, to which the first is broadcast.
void check_second(const char* op, Tensor first, double low, double high,
                  CheckOptions options = {}, int line = __builtin_LINE()) {
  check_gradients(
      [=](const graph::Scope& s, const graph::Outputs& x) {
        return s.op(op, {first, x[0]});
      },
      {values({2, 3}, low, high)}, options, line);
}

}  // namespace

TEST_CASE("the error function and its relatives have their derivatives") {
  check_special("Erf", -2, 2);
  check_special("Erfc", -2, 2);
  check_special("Erfinv", -0.8, 0.8);
  check_special("Ndtri", 0.1, 0.9);
}

TEST_CASE("the gamma function and its relatives have their derivatives") {
  check_special("Lgamma", 0.5, 4);
  check_special("Digamma", 0.5, 4);
  const Tensor orders = Tensor::vector<double>({1, 2, 3});
  check_second("Polygamma", orders, 1, 3);
  check_second("Zeta", Tensor::vector<double>({2, 3.5, 4}), 1, 3);
  check_second("Igamma", Tensor::vector<double>({0.5, 1, 2.5}), 0.5, 3);
  check_second("Igammac", Tensor::vector<double>({0.5, 1, 2.5}), 0.5, 3);
  check_second("_GammaDensity", Tensor::vector<double>({0.5, 1, 2.5}), 0.5, 3);
  check_second("IgammaGradA", Tensor::vector<double>({0.5, 1, 2.5}), 0.5, 3,
               {.tolerance = 1e-5});
  check_second("RandomGammaGrad", Tensor::vector<double>({0.5, 1, 2.5}), 0.5, 3,
               {.tolerance = 1e-4});
}

TEST_CASE("incomplete gamma functions have gradients by both operands") {
  for (const char* op : {"Igamma", "Igammac"})
    check_gradients(op_of(op), {values({2, 3}, 1, 3), values({3}, 1, 3)},
                    {.order = 1});
}

TEST_CASE("incomplete gamma functions have their derivatives at 0 as well") {
  const Tensor zeros = Tensor::vector<double>({0, 0, 0, 0});
  const Tensor orders = Tensor::vector<double>({1, 2, 3, 2.5});
  for (const char* op : {"Igamma", "Igammac"}) {
    CAPTURE(op);
    const double sign = op == std::string("Igamma") ? 1 : -1;
    graph::Graph graph;
    const graph::Scope s(graph);
    const graph::Output x = ops::placeholder(s, DataType::kDouble, Shape{4});
    const graph::Output y = s.op(op, {orders, x});
    const graph::Output first = dense_gradients(s, {y}, {x})[0];
    const graph::Output second = dense_gradients(s, {first}, {x})[0];
    const auto results = evaluate(s, {first, second}, {{x.name(), zeros}});
    CHECK(identical(results[0], Tensor::vector<double>(
                                    {sign, 0 * sign, 0 * sign, 0 * sign})));
    const auto seconds = results[1].flat<double>();
    CHECK(seconds[0] == doctest::Approx(-sign));
    CHECK(seconds[1] == doctest::Approx(sign));
    CHECK(seconds[2] == doctest::Approx(0));
    CHECK(seconds[3] == doctest::Approx(0));
  }
  // No factor of the density overflows.
  const auto far = gradients_of(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return graph::Outputs(s.op("Igamma", {Tensor::scalar(200.f), x[0]}));
      },
      {Tensor::scalar(200.f)});
  CHECK(far[0].data<float>()[0] == doctest::Approx(0.02821).epsilon(1e-3));
}

TEST_CASE("incomplete gamma functions have their slopes at extreme arguments") {
  // The slopes by mpmath 1.3.0.
  const Tensor a = Tensor::vector<double>({1e-300, 1e-300, 1e20, 1e300});
  const Tensor x = Tensor::vector<double>({1e-300, 5, 1.0000000001e20, 1e300});
  const double slopes[] = {1, 1.3475893998170935e-303, 2.4197055105839664e-11,
                           3.9894228040143267e-151};
  for (const char* op : {"Igamma", "Igammac"}) {
    CAPTURE(op);
    const double sign = op == std::string("Igamma") ? 1 : -1;
    const auto found = gradients_of(
        [&](const graph::Scope& s, const graph::Outputs& v) {
          return graph::Outputs(s.op(op, {a, v[0]}));
        },
        {x});
    for (size_t i = 0; i < 4; ++i)
      CHECK(std::abs(found[0].flat<double>()[i] - sign * slopes[i]) <=
            1e-12 * slopes[i]);
  }
}

TEST_CASE("Polygamma and Zeta refuse derivatives that no op computes") {
  for (const char* op : {"Polygamma", "Zeta", "IgammaGradA"}) {
    const auto wrong =
        wrong_gradients(op_of(op), {values({2}, 2, 3), values({2}, 1, 2)});
    REQUIRE(!wrong.ok());
    CHECK(wrong.status().to_string().find("has no gradient: its derivative") !=
          std::string::npos);
  }
}

TEST_CASE("Bessel functions have their derivatives") {
  for (const char* op : {"BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
                         "BesselK0", "BesselK0e", "BesselK1", "BesselK1e",
                         "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"}) {
    CAPTURE(op);
    check_special(op, 0.5, 3);
  }
  for (const char* op : {"BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
                         "BesselJ0", "BesselJ1"}) {
    CAPTURE(op);
    check_special(op, -3, -0.5);
  }
}

TEST_CASE("Bessel functions have their derivatives at 0 as well") {
  const auto slope = [](const char* op) {
    const auto grads = gradients_of(op_of(op), {Tensor::scalar(0.0)});
    return *grads[0].data<double>();
  };
  CHECK(slope("BesselI0") == 0);
  CHECK(slope("BesselI1") == 0.5);
  CHECK(slope("BesselI1e") == 0.5);
  CHECK(slope("BesselJ0") == 0);
  CHECK(slope("BesselJ1") == 0.5);
}

TEST_CASE(
    "digamma has a gradient in half precision, which polygamma does not know") {
  const auto grads = gradients_of(op_of("Digamma"),
                                  {Tensor::vector<Half>({Half(1), Half(2)})});
  CHECK(float(grads[0].data<Half>()[0]) ==
        doctest::Approx(1.645).epsilon(0.01));
  CHECK(float(grads[0].data<Half>()[1]) ==
        doctest::Approx(0.645).epsilon(0.01));
}
