// Newton's method: the cube root of `a`, until a step changes nothing much.
//
//                      +--------------- next -----------------+
//                      v                                      |
//   a --> x = a --> |x - before| > 1e-12 |x| ? --yes--> x - (x^3 - a) / 3 x^2
//                      |
//                      no--> x, steps
//
// How many steps that takes is known to nobody before the loop has ended.
#include <cmath>

#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

struct State {
  Output x, before, steps;
  TAGFLOW_FIELDS(x, before, steps)
};

State cube_root(const Scope& s, const Output& a) {
  return while_loop(
      s,
      [](const Scope& in, const State& v) {
        const Output change = abs(in, sub(in, v.x, v.before));
        return greater(in, change, mul(in, abs(in, v.x), 1e-12));
      },
      [&](const Scope& in, const State& v) {
        const Output square = ops::square(in, v.x);
        const Output error = sub(in, mul(in, square, v.x), a);
        const Output step = real_div(in, error, mul(in, square, 3));
        return State{sub(in, v.x, step), v.x, add(in, v.steps, 1)};
      },
      State{a, zeros_like(s, a), constant(s, 0)});
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output a =
      placeholder(s.named("a"), DataType::kDouble, PartialShape::scalar());
  const State last = cube_root(s, a);

  bool right = true;
  for (const double value : {8.0, 2.0, 1e9, 1e-3}) {
    const auto results =
        examples::run(s, {{"a", Tensor::scalar(value)}}, {last.x, last.steps});
    const double root = results[0].item<double>().value();
    std::printf("the cube root of %g is %.12g, after %d steps\n", value, root,
                results[1].item<int>().value());
    right = right && std::abs(root - std::cbrt(value)) <= 1e-12 * root;
  }
  return right ? 0 : 1;
}
