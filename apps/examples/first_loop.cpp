// The Collatz walk from x to 1, counted: a loop with a conditional in it.
//
//   x -> while x != 1: ( x = even ? x / 2 : 3 x + 1,  steps += 1 ) -> steps
#include <cstdio>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

int main() {
  // The graph. Errors are kept by the scope: build first, then ask.
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kInt64, PartialShape::scalar());
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::not_equal(in, v[0], 1);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output is_even = ops::equal(in, ops::floor_mod(in, v[0], 2), 0);
        const Outputs next = cond(
            in, is_even,
            [&](const Scope& b) -> Outputs {
              return ops::floor_div(b, v[0], 2);
            },
            [&](const Scope& b) -> Outputs {
              return ops::add(b, ops::mul(b, v[0], 3), 1);
            });
        return {next[0], ops::add(in, v[1], 1)};
      },
      {x, 0});
  const Output steps = ops::identity(s.named("steps"), last[1]);
  if (!s.ok()) {
    std::fprintf(stderr, "%s\n", s.status().to_string().c_str());
    return 1;
  }

  // The run.
  auto session = actors::Session::create({}).value();
  if (!session->extend(graph).ok()) return 1;
  const auto results =
      session->run({{"x", Tensor::scalar<int64_t>(27)}}, {steps.name()});
  if (!results.ok()) {
    std::fprintf(stderr, "%s\n", results.status().to_string().c_str());
    return 1;
  }
  const int count = (*results)[0].item<int32_t>().value();
  std::printf("27 reaches 1 in %d steps\n", count);
  return count == 111 ? 0 : 1;
}
