// Gradients and tangents of random programs, compared with central differences:
// at first order those of reverse and of forward mode, at second order those of
// reverse over reverse, forward over reverse and reverse over forward.
// TAGFLOW_RANDOM_GRADIENTS sets their number and the first seed: "1000" or
// "1000 5000".
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <sstream>

#include "autodiff/jvp.h"
#include "graph/function.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/autodiff/random_program.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

bool has_loop(const graph::Graph& graph) {
  for (const graph::Node* node : graph.nodes())
    if (node->is_next_iteration()) return true;
  return false;
}

// How many programs there are, and the seed of the first.
struct Seeds {
  explicit Seeds(uint32_t usual_count) : count(usual_count) {
    if (const char* text = std::getenv("TAGFLOW_RANDOM_GRADIENTS"))
      std::istringstream(text) >> count >> first;
  }
  uint32_t count, first = 1;
};

// The outputs of the program of a seed.
using Build = std::function<graph::Outputs(
    const graph::Scope&, const graph::Outputs& x, uint32_t seed)>;

// Compares the derivatives of programs with differences, until five are wrong.
void check_programs(const Seeds& seeds, const std::vector<Tensor>& xs,
                    const Build& build) {
  int wrong = 0;
  for (uint32_t seed = seeds.first;
       seed < seeds.first + seeds.count && wrong < 5; ++seed) {
    const auto what = wrong_gradients(
        [&](const graph::Scope& s, const graph::Outputs& x) {
          return build(s, x, seed);
        },
        xs, {.tolerance = 2e-5, .unknown_shapes = false});
    CAPTURE(seed);
    if (!what.ok()) FAIL_CHECK(what.status().to_string());
    if (what.ok() && !what->empty()) FAIL_CHECK(*what);
    wrong += !what.ok() || !what->empty();
  }
}

// The xs of programs that are compared with one another.
graph::Outputs three_constants(const graph::Scope& s) {
  graph::Outputs xs;
  for (const double x : {0.3, -0.7, 0.5})
    xs.push_back(graph::ops::constant(s, Tensor::of<double>({2}, {x, -x})));
  return xs;
}

}  // namespace

TEST_CASE("derivatives of random programs agree with differences") {
  const Seeds seeds(60);
  uint32_t loops = 0;
  check_programs(
      seeds,
      {values({2}, -0.9, 0.9), values({2}, -0.9, 0.9), values({2}, -0.9, 0.9)},
      [&](const graph::Scope& s, const graph::Outputs& x, uint32_t seed) {
        const graph::Outputs y = RandomProgram(seed).build(s, x);
        loops += has_loop(s.graph());
        return y;
      });
  CHECK(loops > seeds.count / 3);
}

TEST_CASE("gradients of random recursions agree with differences") {
  const Seeds seeds(60);
  uint32_t recursions = 0;
  check_programs(
      seeds, {values({2}, -0.9, 0.9), values({2}, -0.9, 0.9)},
      [&](const graph::Scope& s, const graph::Outputs& x, uint32_t seed) {
        const graph::Outputs y = RandomProgram(seed, true).build(s, x);
        recursions += !s.graph().library().empty();
        return y;
      });
  CHECK(recursions > seeds.count / 3);
}

TEST_CASE("random programs have the same gradients if parts run again") {
  const Seeds seeds(40);
  const auto results = [](uint32_t seed, bool recomputes) {
    graph::Graph graph;
    const graph::Scope s(graph);
    const graph::Outputs xs = three_constants(s);
    const graph::Outputs ys =
        RandomProgram(seed, false, recomputes).build(s, xs);
    graph::Outputs all = ys;
    graph::Outputs last = ys;
    for (int order = 0; order < 2; ++order) {
      last = dense_gradients(s, last, xs, {.zeros_if_unconnected = true});
      for (const graph::Output& output : last) all.push_back(output);
    }
    return evaluate(s, all);
  };
  for (uint32_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    const auto kept = results(seed, false);
    const auto again = results(seed, true);
    for (size_t i = 0; i < kept.size(); ++i)
      for (int64_t j = 0; j < kept[i].num_elements(); ++j) {
        CAPTURE(i);
        const double wanted = kept[i].flat<double>()[size_t(j)];
        CHECK(again[i].flat<double>()[size_t(j)] ==
              doctest::Approx(wanted).epsilon(1e-9));
      }
  }
}

TEST_CASE("derivatives are the same to the bit over devices") {
  const Seeds seeds(25);
  for (uint32_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    graph::Graph graph;
    const graph::Scope s(graph);
    const graph::Outputs xs = three_constants(s);
    const graph::Outputs ys = RandomProgram(seed, seed % 2 == 0).build(s, xs);
    const GradientOptions checked{.zeros_if_unconnected = true,
                                  .check_liveness = true};
    const graph::Outputs first = dense_gradients(s, ys, xs, checked);
    const graph::Outputs second = dense_gradients(s, first, xs, checked);
    const ForwardOptions connected{.zeros_if_unconnected = true,
                                   .check_liveness = true};
    graph::Outputs all = first;
    for (const graph::Outputs& more : {second, jvp(s, ys, xs, xs, connected),
                                       jvp(s, first, xs, xs, connected)})
      for (const graph::Output& output : more) all.push_back(output);
    const std::vector<Tensor> expected = evaluate(s, all);
    for (const char* devices : {"cpu:3", "cpu:2,stream:1"}) {
      actors::SessionOptions options;
      options.devices = devices;
      options.scatter = seed;
      CAPTURE(seed);
      CAPTURE(devices);
      const std::vector<Tensor> cut = evaluate(s, all, {}, options);
      for (size_t i = 0; i < cut.size(); ++i)
        CHECK(identical(cut[i], expected[i]));
    }
  }
}
