#include "apps/examples/ode/dormand_prince.h"

#include <array>

#include "graph/builder/builder.h"

namespace tagflow::ode {

using namespace graph;       // NOLINT: the builder's vocabulary
using namespace graph::ops;  // NOLINT

namespace {

constexpr size_t kStages = 7;
using Row = std::array<double, kStages>;

// The tableau: times, the weights of earlier slopes in each stage, and the
// difference between the weights of orders 5 and 4. The last stage is at the
// result, like the first one of the next step.
constexpr Row kTimes = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
constexpr std::array<Row, kStages> kStageWeights = {{
    {},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
}};
constexpr Row kErrorWeights = {
    71. / 57600,      0,         -71. / 16695, 71. / 1920,
    -17253. / 339200, 22. / 525, -1. / 40};

struct State {
  Output t, h, y;
  Output slope;  // at (t, y)
  Output steps, rejected;
  TAGFLOW_FIELDS(t, h, y, slope, steps, rejected)
};
// The state that an accepted step changes.
struct Place {
  Output t, y, slope;
  TAGFLOW_FIELDS(t, y, slope)
};

class Solver {
 public:
  Solver(const RightSide& right_side, const Output& end,
         const OdeOptions& options)
      : right_side_(right_side), end_(end), options_(options) {}

  Output goes_on(const Scope& in, const State& v) const {
    return logical_and(in, less(in, v.t, end_),
                       less(in, v.steps, options_.max_steps));
  }

  State step(const Scope& in, const State& v) const {
    const Output rest = sub(in, end_, v.t);
    const Output h = minimum(in, v.h, rest);
    Outputs slopes = v.slope;
    Output y;
    for (size_t i = 1; i < kStages; ++i) {
      y = add(in, v.y, mul(in, h, weighted(in, slopes, kStageWeights[i])));
      slopes.push_back(slope(in, add(in, v.t, mul(in, h, kTimes[i])), y));
    }
    const Output error = mul(in, h, weighted(in, slopes, kErrorWeights));
    const Output badness = mean_square(in, error, v.y, y);
    // Comparisons with NaN are false.
    const Output is_good = less_equal(in, badness, 1.0);
    const Place next = cond(
        in, is_good,
        [&](const Scope& b) {
          // The last step ends exactly at the end, in spite of rounding.
          const Output t =
              select(b, less(b, h, rest), add(b, v.t, h), identity(b, end_));
          return Place{t, identity(b, y), identity(b, slopes[kStages - 1])};
        },
        [&](const Scope& b) {
          return Place{identity(b, v.t), identity(b, v.y),
                       identity(b, v.slope)};
        });
    State after;
    after.t = next.t;
    after.y = next.y;
    after.slope = next.slope;
    after.h = mul(in, h, growth(in, badness));
    after.steps = add(in, v.steps, 1);
    after.rejected = add(in, v.rejected,
                         cast(in, logical_not(in, is_good), DataType::kInt32));
    return after;
  }

  Output slope(const Scope& in, const Output& t, const Output& y) const {
    const Output slope = right_side_(in, t, y);
    if (in.ok() &&
        (slope.dtype() != y.dtype() || !slope.shape().compatible(y.shape())))
      in.fail(invalid_argument("[integrate] y is {}{}, but its slope {}{}",
                               dtype_name(y.dtype()), y.shape().to_string(),
                               dtype_name(slope.dtype()),
                               slope.shape().to_string()));
    return in.ok() ? Output(ensure_shape(in, slope, y.shape())) : Output();
  }

 private:
  static Output weighted(const Scope& in, const Outputs& slopes,
                         const Row& weights) {
    Outputs terms;
    for (size_t i = 0; i < slopes.size(); ++i)
      if (weights[i] != 0) terms.push_back(mul(in, slopes[i], weights[i]));
    return add_n(in, terms);
  }

  // The mean square of the errors relative to their tolerances.
  Output mean_square(const Scope& in, const Output& error, const Output& from,
                     const Output& to) const {
    const Output size = maximum(in, abs(in, from), abs(in, to));
    const Output allowed =
        add(in, mul(in, size, options_.relative), options_.absolute);
    return reduce_mean(in, square(in, real_div(in, error, allowed)));
  }

  // The factor of the step size. Clamps an error of 0 before the power.
  Output growth(const Scope& in, const Output& badness) const {
    const Output usual =
        mul(in, pow(in, maximum(in, badness, 1e-12), -0.1), 0.9);
    const Output bounded = clip_by_value(in, usual, 0.2, 5.0);
    return select(in, is_finite(in, badness), bounded, 0.2);
  }

  const RightSide& right_side_;
  const Output end_;
  const OdeOptions& options_;
};

}  // namespace

OdeResult integrate(const Scope& outer, const RightSide& right_side,
                    const Output& y, const Input& start, const Input& end,
                    const OdeOptions& options) {
  const Scope s = outer.sub_scope("ode");
  const DataType dtype = y.dtype();
  const Output from = s.resolve(start, dtype, "start");
  const Output given_end = s.resolve(end, dtype, "end");
  const Output in_order =
      assert_(s, less_equal(s, from, given_end),
              {"[integrate] the end is before the start:", from, given_end});
  const Output to = with_dependencies(s, in_order, given_end);
  const Solver solver(right_side, to, options);
  State first;
  first.t = from;
  first.h = mul(s, sub(s, to, from), options.first_step);
  first.y = y;
  first.slope = solver.slope(s, from, y);
  first.steps = constant(s, 0);
  first.rejected = constant(s, 0);
  if (!s.ok()) return {};
  const State last = while_loop(
      s, [&](const Scope& in, const State& v) { return solver.goes_on(in, v); },
      [&](const Scope& in, const State& v) { return solver.step(in, v); },
      first);
  const Output is_there = assert_(
      s, equal(s, last.t, to),
      {"[integrate] the steps are used up, t is only:", last.t, last.steps});
  return {with_dependencies(s, is_there, last.y), last.steps, last.rejected};
}

}  // namespace tagflow::ode
