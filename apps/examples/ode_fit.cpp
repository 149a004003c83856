// A differential equation is fitted to what was observed, in one run: Newton's
// method as a loop around the solver's loop.
//
//   rates -> while gradient is not 0:
//              y = 1, 1 -> for each observation: integrate to its time, compare
//              loss -> gradient g -> Hessian H, of products with unit vectors
//              rates -= H^-1 g, damped
//
// Prey x and predators y: x' = a x - b x y, y' = c x y - d y. How many steps
// the solver takes depends on the rates, and the derivatives go through them.
#include <cmath>
#include <cstdio>

#include "apps/examples/ode/dormand_prince.h"
#include "apps/examples/run.h"
#include "autodiff/gradients.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kRates = 4, kObservations = 12, kMostTrips = 50;
constexpr double kInterval = 0.5;
const std::vector<double> kTrue = {1.5, 1, 1, 3}, kFirst = {1.2, 0.8, 0.9, 2.5};

Output vector(const Scope& s, const std::vector<double>& values) {
  return constant(s, Tensor::of<double>({int64_t(values.size())}, values));
}

struct Observing {
  Output i, y, steps;
  TensorArray observed;
  TAGFLOW_FIELDS(i, y, steps, observed)
};

// What is there at kInterval, 2 kInterval, ...: [kObservations, 2].
Observing observe(const Scope& s, const Output& rates) {
  const Outputs r = unpack(s, rates, kRates);
  const auto slope = [&](const Scope& in, const Output&, const Output& y) {
    const Outputs of = unpack(in, y, 2);
    const Output meetings = mul(in, of[0], of[1]);
    return pack(in, {sub(in, mul(in, r[0], of[0]), mul(in, r[1], meetings)),
                     sub(in, mul(in, r[2], meetings), mul(in, r[3], of[1]))});
  };
  const auto is_left = [](const Scope& in, const Observing& v) {
    return less(in, v.i, kObservations);
  };
  const auto next = [&](const Scope& in, const Observing& v) {
    const auto solved =
        ode::integrate(in, slope, v.y, 0.0, kInterval, {.relative = 1e-8});
    return Observing{add(in, v.i, 1), solved.y, add(in, v.steps, solved.steps),
                     v.observed.write(in, v.i, solved.y)};
  };
  return while_loop(s, is_left, next,
                    Observing{constant(s, 0), vector(s, {1, 1}), constant(s, 0),
                              TensorArray(s, kObservations, DataType::kDouble,
                                          {.element_shape = {2}})});
}

struct Fit {
  Output trips, rates, loss, slope, steps;  // slope: the length of g
  TAGFLOW_FIELDS(trips, rates, loss, slope, steps)
};

Fit fit(const Scope& s, const Output& data) {
  const auto goes_on = [](const Scope& in, const Fit& v) {
    return logical_and(in, less(in, v.trips, kMostTrips),
                       greater(in, v.slope, 1e-9));
  };
  const auto improve = [&](const Scope& in, const Fit& v) {
    const Observing seen = observe(in, v.rates);
    const Output loss =
        reduce_sum(in, square(in, sub(in, seen.observed.stack(in), data)));
    const Output g = autodiff::dense_gradients(in, {loss}, {v.rates})[0];
    Outputs rows;
    for (int i = 0; i < kRates; ++i)
      rows.push_back(
          autodiff::dense_gradients(in, {gather(in, g, i)}, {v.rates})[0]);
    const Output slope = sqrt(in, reduce_sum(in, square(in, g)));
    // Far away the Hessian may have no inverse that leads downwards.
    const Output eye =
        constant(in, Tensor::of<double>({4, 4}, {1, 0, 0, 0, 0, 1, 0, 0,  //
                                                 0, 0, 1, 0, 0, 0, 0, 1}));
    const Output damped = add(in, pack(in, rows), mul(in, eye, slope));
    const Output step = in.op("MatrixSolve", {damped, expand_dims(in, g, 1)});
    return Fit{add(in, v.trips, 1), sub(in, v.rates, squeeze(in, step, {1})),
               loss, slope, add(in, v.steps, seen.steps)};
  };
  return while_loop(s, goes_on, improve,
                    Fit{constant(s, 0), vector(s, kFirst), constant(s, 1.0),
                        constant(s, 1.0), constant(s, 0)});
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output data = observe(s, vector(s, kTrue)).observed.stack(s);
  const Fit last = fit(s, data);
  const auto results =
      examples::run(s, {}, {last.trips, last.rates, last.steps});
  const auto rates = results[1].flat<double>();
  double apart = 0;
  for (size_t i = 0; i < kTrue.size(); ++i)
    apart = std::max(apart, std::abs(rates[i] - kTrue[i]));
  const int trips = results[0].scalar_value<int32_t>();
  std::printf(
      "%d trips of Newton, %d steps of the solver: rates %.3f %.3f "
      "%.3f %.3f\n",
      trips, results[2].scalar_value<int32_t>(), rates[0], rates[1], rates[2],
      rates[3]);
  return trips < kMostTrips && apart < 1e-6 ? 0 : 1;
}
