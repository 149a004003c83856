// A loop inside a conditional inside a loop: the perfect numbers up to n, the
// even ones found by adding up divisors, odd ones skipped.
//
//                 +------------------- i += 1 -----------------------+
//                 v                                                  |
//   i = 2 --> i <= n ? --yes--> i even ? --no--> 0 ------------------+
//   found       |                 |                                  |
//               |                 yes--> while d < i: sum += d if d | i
//               |                          +--- d += 1 ---+          |
//               no--> found                               sum == i ? 1 : 0
//
// Frames nest as the program does: iteration 6 of the outer loop holds an
// instance of the inner one, and iteration 7 holds none.
#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

struct Search {
  Output i, found;
  TensorArray perfect;
  TAGFLOW_FIELDS(i, found, perfect)
};

struct Divisors {
  Output d, sum;
  TAGFLOW_FIELDS(d, sum)
};

Output sum_of_divisors(const Scope& s, const Output& number) {
  return while_loop(
             s,
             [&](const Scope& in, const Divisors& v) {
               return less(in, v.d, number);
             },
             [&](const Scope& in, const Divisors& v) {
               const Output divides = equal(in, floor_mod(in, number, v.d), 0);
               return Divisors{add(in, v.d, 1),
                               add(in, v.sum, select(in, divides, v.d, 0))};
             },
             Divisors{constant(s, 1), constant(s, 0)})
      .sum;
}

Output perfect_numbers(const Scope& s, const Output& n) {
  const TensorArray empty(s, 0, DataType::kInt32, {.dynamic_size = true});
  const Search last = while_loop(
      s,
      [&](const Scope& in, const Search& v) { return less_equal(in, v.i, n); },
      [](const Scope& in, const Search& v) {
        const Output is_even = equal(in, floor_mod(in, v.i, 2), 0);
        const Output sum = cond(
            in, is_even,
            [&](const Scope& yes) { return sum_of_divisors(yes, v.i); },
            [](const Scope& no) { return constant(no, 0); })[0];
        const auto [found, perfect] = cond(
            in, equal(in, sum, v.i),
            [&](const Scope& yes) {
              return std::pair(add(yes, v.found, 1),
                               v.perfect.write(yes, v.found, v.i));
            },
            [&](const Scope&) { return std::pair(v.found, v.perfect); });
        return Search{add(in, v.i, 1), found, perfect};
      },
      Search{constant(s, 2), constant(s, 0), empty});
  return last.perfect.stack(s);
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output n =
      placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Output perfect = perfect_numbers(s, n);
  const auto result =
      examples::run(s, {{"n", Tensor::scalar(500)}}, {perfect})[0];
  std::printf("perfect numbers up to 500: %s\n", result.to_string().c_str());
  const auto found = result.flat<int>();
  const std::vector<int> expected = {6, 28, 496};
  return std::equal(found.begin(), found.end(), expected.begin(),
                    expected.end())
             ? 0
             : 1;
}
