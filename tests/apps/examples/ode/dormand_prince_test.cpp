#include "apps/examples/ode/dormand_prince.h"

#include <doctest/doctest.h>

#include <cmath>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::ode;
using namespace tagflow::graph;       // NOLINT: the builder's vocabulary
using namespace tagflow::graph::ops;  // NOLINT

namespace {

using Numbers = std::vector<double>;

Tensor tensor(const Numbers& values) {
  return Tensor::of<double>({int64_t(values.size())}, values);
}
Numbers numbers(const Tensor& tensor) {
  const auto flat = tensor.flat<double>();
  return {flat.begin(), flat.end()};
}

// What an equation with parameters p does, and its derivatives by p: "p", "v"
// and "end" are fed, the loss is the sum of the squares of y(end).
struct Problem {
  Graph graph;
  Scope s{graph};
  Output p, v, end;
  OdeResult solved;
  Output loss, gradient, product;
  std::unique_ptr<actors::Session> session;

  using Equation = std::function<Output(const Scope&, const Output& p,
                                        const Output& t, const Output& y)>;
  Problem(int64_t parameters, const Numbers& y, const Equation& equation,
          const OdeOptions& options) {
    p = placeholder(s.named("p"), DataType::kDouble, {parameters});
    v = placeholder(s.named("v"), DataType::kDouble, {parameters});
    end =
        placeholder(s.named("end"), DataType::kDouble, PartialShape::scalar());
    solved = integrate(
        s,
        [&](const Scope& in, const Output& t, const Output& at) {
          return equation(in, p, t, at);
        },
        constant(s, tensor(y)), 0.0, end, options);
    loss = reduce_sum(s, square(s, solved.y));
    gradient = autodiff::dense_gradients(s, {loss}, {p})[0];
    product = autodiff::dense_gradients(s, {reduce_sum(s, mul(s, gradient, v))},
                                        {p})[0];
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    session = actors::Session::create({}).value();
    REQUIRE(session->extend(graph).ok());
  }

  Result<std::vector<Tensor>> try_run(const Outputs& fetches, const Numbers& at,
                                      double until, const Numbers& along) {
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    return session->run({{"p", tensor(at)},
                         {"v", tensor(along)},
                         {"end", Tensor::scalar(until)}},
                        names);
  }
  std::vector<Tensor> run(const Outputs& fetches, const Numbers& at,
                          double until = 1, Numbers along = {}) {
    along.resize(at.size());
    auto results = try_run(fetches, at, until, along);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    return *results;
  }
  Numbers y_at(const Numbers& at, double until) {
    return numbers(run({solved.y}, at, until)[0]);
  }
};

// y' = r y (1 - y): y(t) = 1 / (1 + (1 / y0 - 1) exp(-r t)).
Output logistic(const Scope& in, const Output& p, const Output&,
                const Output& y) {
  return mul(in, p, mul(in, y, sub(in, 1, y)));
}

// x' = a x - b x y, y' = c x y - d y: prey and predators.
Output lotka_volterra(const Scope& in, const Output& p, const Output&,
                      const Output& y) {
  const Outputs rates = unpack(in, p, 4), xy = unpack(in, y, 2);
  const Output meetings = mul(in, xy[0], xy[1]);
  return pack(in,
              {sub(in, mul(in, rates[0], xy[0]), mul(in, rates[1], meetings)),
               sub(in, mul(in, rates[2], meetings), mul(in, rates[3], xy[1]))});
}
const Numbers kRates = {1.5, 1, 1, 3};

// `relative` to the largest of them.
void check_close(const Numbers& found, const Numbers& wanted, double relative) {
  REQUIRE(found.size() == wanted.size());
  double largest = 0;
  for (const double number : wanted)
    largest = std::max(largest, std::abs(number));
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CAPTURE(found[i]);
    CAPTURE(wanted[i]);
    CHECK(std::abs(found[i] - wanted[i]) <= relative * largest);
  }
}

// Differences of a fetch of [n] by parameter i.
Numbers difference(Problem& problem, const Output& fetch, Numbers at, size_t i,
                   double step, double until) {
  const double middle = at[i];
  at[i] = middle + step;
  Numbers high = numbers(problem.run({fetch}, at, until)[0]);
  at[i] = middle - step;
  const Numbers low = numbers(problem.run({fetch}, at, until)[0]);
  for (size_t k = 0; k < high.size(); ++k)
    high[k] = (high[k] - low[k]) / (2 * step);
  return high;
}

}  // namespace

TEST_CASE("the ODE solver's error and its steps follow the tolerance") {
  const double y0 = 0.1, r = 2, until = 3;
  const double exact = 1 / (1 + (1 / y0 - 1) * std::exp(-r * until));
  double last_error = 1;
  int last_steps = 0;
  for (const double tolerance : {1e-3, 1e-6, 1e-9}) {
    Problem problem(1, {y0}, logistic, {.relative = tolerance});
    const auto results =
        problem.run({problem.solved.y, problem.solved.steps}, {r}, until);
    const double error = std::abs(numbers(results[0])[0] - exact);
    CHECK(error < 3 * tolerance);
    CHECK(error < last_error / 10);
    CHECK(results[1].scalar_value<int32_t>() > last_steps);
    last_error = error;
    last_steps = results[1].scalar_value<int32_t>();
  }
}

TEST_CASE("the ODE solver's gradients agree with a closed form") {
  const double y0 = 0.1, r = 2, t = 1.5;
  Problem problem(1, {y0}, logistic, {.relative = 1e-10, .absolute = 1e-12});
  // With e = (1 / y0 - 1) exp(-r t): y = 1 / (1 + e), y' = t e y^2 by r.
  const double e = (1 / y0 - 1) * std::exp(-r * t), y = 1 / (1 + e);
  const double dy = t * e * y * y;
  const double ddy = -t * t * e * y * y + 2 * t * e * y * dy;
  const auto results = problem.run(
      {problem.solved.y, problem.gradient, problem.product}, {r}, t, {3});
  check_close(numbers(results[0]), {y}, 1e-9);
  check_close(numbers(results[1]), {2 * y * dy}, 1e-8);
  check_close(numbers(results[2]), {3 * 2 * (dy * dy + y * ddy)}, 1e-6);
}

TEST_CASE("the ODE solver's gradients are exact at a coarse tolerance") {
  Problem problem(4, {1, 1}, lotka_volterra,
                  {.relative = 1e-2, .absolute = 1e-3, .first_step = 0.3});
  const double until = 4;
  const Numbers v = {0.3, -1, 0.5, 0.2};
  const auto results =
      problem.run({problem.gradient, problem.product, problem.solved.rejected},
                  kRates, until, v);
  CHECK(results[2].scalar_value<int32_t>() > 0);
  const Output loss = reshape(problem.s, problem.loss, {1});
  REQUIRE(problem.s.ok());
  problem.session = actors::Session::create({}).value();
  REQUIRE(problem.session->extend(problem.graph).ok());
  Numbers gradient, product(4, 0);
  for (size_t i = 0; i < 4; ++i) {
    gradient.push_back(difference(problem, loss, kRates, i, 1e-6, until)[0]);
    const Numbers row =
        difference(problem, problem.gradient, kRates, i, 1e-6, until);
    for (size_t k = 0; k < 4; ++k) product[k] += v[i] * row[k];
  }
  check_close(numbers(results[0]), gradient, 1e-6);
  check_close(numbers(results[1]), product, 1e-5);
  // The problem, solved well, has other gradients: these are not its.
  Problem fine(4, {1, 1}, lotka_volterra, {.relative = 1e-9});
  const double coarse = numbers(results[0])[0];
  const double exact = numbers(fine.run({fine.gradient}, kRates, until)[0])[0];
  CHECK(std::abs(coarse - exact) > 1e-4 * std::abs(exact));
}

TEST_CASE("the ODE solver keeps the invariant of prey and predators") {
  Problem problem(4, {2, 1}, lotka_volterra, {.relative = 1e-9});
  const auto kept = [](const Numbers& y) {
    return y[0] - 3 * std::log(y[0]) + y[1] - 1.5 * std::log(y[1]);
  };
  const Numbers y = problem.y_at(kRates, 20);
  CHECK(kept(y) == doctest::Approx(kept({2, 1})).epsilon(1e-6));
  CHECK(std::abs(y[0] - 2) > 0.01);
}

TEST_CASE("the ODE solver takes no step over an interval of length 0") {
  Problem problem(1, {0.1}, logistic, {});
  const auto results = problem.run(
      {problem.solved.y, problem.solved.steps, problem.gradient}, {2}, 0);
  CHECK(numbers(results[0]) == Numbers{0.1});
  CHECK(results[1].scalar_value<int32_t>() == 0);
  CHECK(numbers(results[2]) == Numbers{0});
}

TEST_CASE("the ODE solver rejects a step to infinity or NaN") {
  // y = (1 - t / 2)^2, until there is no root any more; a long step is beyond.
  Problem problem(1, {1},
                  [](const Scope& in, const Output& p, const Output&,
                     const Output& y) { return mul(in, p, sqrt(in, y)); },
                  {.first_step = 1});
  const auto results =
      problem.run({problem.solved.y, problem.solved.rejected}, {-1}, 1.8);
  check_close(numbers(results[0]), {0.01}, 1e-4);
  CHECK(results[1].scalar_value<int32_t>() > 0);
}

TEST_CASE("the ODE solver fails with the reason if it cannot solve") {
  Problem few(4, {1, 1}, lotka_volterra, {.max_steps = 5});
  auto result = few.try_run({few.solved.y}, kRates, 10, {0, 0, 0, 0});
  REQUIRE_FALSE(result.ok());
  CHECK(result.status().code() == Code::kInvalidArgument);
  CHECK(result.status().to_string().find("the steps are used up") !=
        std::string::npos);
  result = few.try_run({few.solved.y}, kRates, -1, {0, 0, 0, 0});
  REQUIRE_FALSE(result.ok());
  CHECK(result.status().to_string().find("before the start") !=
        std::string::npos);

  Graph graph;
  const Scope s(graph);
  integrate(
      s,
      [](const Scope& in, const Output&, const Output&) {
        return Output(constant(in, 1.0f));
      },
      constant(s, tensor({1, 2})), 0.0, 1.0);
  CHECK(s.status().to_string().find("y is double[2], but its slope float[]") !=
        std::string::npos);
}
