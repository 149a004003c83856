// Solves ordinary differential equations by a loop with adaptive steps.
//
//            +------ t, y, k1 ------+--- accepted: t + h, the new y and slope
//            v                      |
//   t < end -+-> 7 slopes -> error -+--- rejected: t, y, k1 stay
//            |                 |
//            +------ h <-------+-------- the next step follows from the error
//
// The result is differentiated like any loop, through the computation of the
// step sizes, too. So gradients are exact for the solver's numerical result, at
// each tolerance and of any order.
#pragma once

#include <functional>

#include "graph/builder/scope.h"

namespace tagflow::ode {

// dy/dt at (t, y), of y's shape and type.
using RightSide = std::function<graph::Output(
    const graph::Scope&, const graph::Output& t, const graph::Output& y)>;

struct OdeOptions {
  // The tolerance for an element of y in a step is absolute + relative |y|; the
  // root mean square of error / tolerance is at most 1.
  double relative = 1e-6, absolute = 1e-9;
  double first_step = 0.01;     // of end - start
  int64_t max_steps = 100'000;  // accepted and rejected
};

struct OdeResult {
  graph::Output y;         // at `end`
  graph::Output steps;     // int32 scalars: all steps,
  graph::Output rejected;  // and those that were too long
};

// y(end), where y(start) is `y`, of a floating-point type and any shape, and
// start and end are scalars of that type. Uses the pair of orders 5 and 4 of
// Dormand and Prince ("A family of embedded Runge-Kutta formulae", 1980); the
// next step is h times 0.9 / error^(1/5), clamped to [h / 5, 5 h]. A step that
// leads to values that are not finite is rejected; then values stay finite, but
// gradients may be NaN.
//
// The scope fails if the right side has another type or shape. The run fails
// (InvalidArgument) if end < start, and if more than max_steps are
// needed.
OdeResult integrate(const graph::Scope& s, const RightSide& right_side,
                    const graph::Output& y, const graph::Input& start,
                    const graph::Input& end, const OdeOptions& options = {});

}  // namespace tagflow::ode
