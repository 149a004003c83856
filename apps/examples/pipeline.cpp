// A pipeline of two devices inside a loop, whose stages overlap iterations.
//
//        +---- next x ---+                 +---- next y ---+
//        v               |                 v               |
//   x -> stage 1: x = A x, on /cpu:0 -x--> stage 2: y = B (y + x), on /cpu:1
//
//   /cpu:0    A x0   A x1   A x2   A x3   ...
//   /cpu:1           B y0   B y1   B y2   B y3   ...        time -->
//
// Each stage waits for itself, one iteration ago, and stage 2 for stage 1:
// while it is at one iteration, stage 1 can be at the next, since both are in
// flight.
//
// A and B shift rows: products as costly as any, whose results are known.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <vector>

#include "actors/watch/observer.h"
#include "apps/examples/run.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

constexpr size_t kSize = 256;  // products of some 300 us
constexpr int kTrips = 20;
constexpr int kShiftA = 1, kShiftB = 3;

using Values = std::vector<float>;  // of a matrix, row by row

// Row i of the product by it is row i + `by`, around the end.
Values shift(size_t by) {
  Values matrix(kSize * kSize, 0);
  for (size_t i = 0; i < kSize; ++i) matrix[i * kSize + (i + by) % kSize] = 1;
  return matrix;
}

// Small whole numbers: sums of them are exact.
Values first_x() {
  Values matrix(kSize * kSize);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = float(i * i % 11);
  return matrix;
}

Output constant(const Scope& s, const Values& matrix) {
  return ops::constant(s, Tensor::of<float>({kSize, kSize}, matrix));
}

struct State {
  Output i, x, y;
  TAGFLOW_FIELDS(i, x, y)
};

Output pipeline(const Scope& s) {
  const auto goes_on = [](const Scope& in, const State& v) {
    return ops::less(in.with_device("/cpu:0"), v.i, kTrips);
  };
  const Output a = constant(s, shift(kShiftA)), b = constant(s, shift(kShiftB));
  const auto stages = [&](const Scope& in, const State& v) {
    const Scope one = in.with_device("/cpu:0"), two = in.with_device("/cpu:1");
    const Output x = ops::matmul(one, a, v.x);
    const Output y = ops::matmul(two, b, ops::add(two, v.y, x));
    return State{ops::add(one, v.i, 1), x, y};
  };
  const Output x = constant(s, first_x());
  const State first{ops::constant(s, 0), x, ops::zeros_like(s, x)};
  return while_loop(s, goes_on, stages, first, {.parallel_iterations = 4}).y;
}

// The result of the loop, computed in C++.
Values expected() {
  Values x = first_x(), y(x.size(), 0);
  for (int trip = 0; trip < kTrips; ++trip) {
    std::rotate(x.begin(), x.begin() + kShiftA * kSize, x.end());
    for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
    std::rotate(y.begin(), y.begin() + kShiftB * kSize, y.end());
  }
  return y;
}

// Sees which iterations the stages compute for at the same time.
struct Overlap : actors::Observer {
  void on_compute(const actors::Location& location,
                  const Node& /*node*/) override {
    const std::lock_guard lock(mutex);
    computing.insert(location.tag.iteration);
    const std::set<int64_t> different(computing.begin(), computing.end());
    highest = std::max(highest, different.size());
  }
  void on_computed(const actors::Location& location,
                   const Node& /*node*/) override {
    const std::lock_guard lock(mutex);
    computing.extract(location.tag.iteration);
  }

  std::mutex mutex;
  std::multiset<int64_t> computing;  // a kernel each
  size_t highest = 0;
};

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output y = pipeline(s);
  Overlap overlap;
  const Tensor result =
      examples::run(s, {}, {y}, examples::on_devices("cpu:2", 2),
                    examples::watched_by(&overlap))[0];
  const bool good = std::ranges::equal(result.flat<float>(), expected());
  std::printf("iterations that computed at the same time: %zu; result %s\n",
              overlap.highest, good ? "right" : "wrong");
  return good ? 0 : 1;
}
