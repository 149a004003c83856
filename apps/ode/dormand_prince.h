// Ordinary differential equations, solved by a loop that chooses its own steps.
//
//            +------ t, y, k1 ------+--- accepted: t + h, the new y and slope
//            v                      |
//   t < end -+-> 7 slopes -> error -+--- rejected: t, y, k1 stay
//            |                 |
//            +------ h <-------+-------- the next step follows from the error
//
// The result is differentiated as any loop is: exactly as it was computed, with
// all that steps have to do with it, so that gradients are those of the numbers
// which the solver gives, at each tolerance and of any order.
#pragma once

#include <functional>

#include "graph/builder/scope.h"

namespace tagflow::ode {

// dy/dt at (t, y), of y's shape and type.
using RightSide = std::function<graph::Output(
    const graph::Scope&, const graph::Output& t, const graph::Output& y)>;

struct OdeOptions {
  // An element of y may be wrong by absolute + relative |y| in a step; the root
  // of the mean of the squares of what it is, over that, is at most 1.
  double relative = 1e-6, absolute = 1e-9;
  double first_step = 0.01;     // of end - start
  int64_t max_steps = 100'000;  // accepted and rejected
};

struct OdeResult {
  graph::Output y;         // at `end`
  graph::Output steps;     // int32 scalars: of all steps,
  graph::Output rejected;  // and of those that were too long
};

// y(end), where y(start) is the `y` of a floating-point type, of any shape, and
// start and end are scalars of that type. The pair of orders 5 and 4 of Dormand
// and Prince ("A family of embedded Runge-Kutta formulae", 1980); the next step
// is h times 0.9 / error^(1/5), but between h / 5 and 5 h. A step that leads to
// what is not finite is rejected; then values go on, but gradients may be NaN.
//
// The scope fails where the right side has another type or shape. The run fails
// (InvalidArgument) where end < start, and where max_steps are not enough.
OdeResult integrate(const graph::Scope& s, const RightSide& right_side,
                    const graph::Output& y, const graph::Input& start,
                    const graph::Input& end, const OdeOptions& options = {});

}  // namespace tagflow::ode
