// Gradients and tangents of random programs, against central differences: at
// first order those of reverse and of forward mode, at second order those of
// reverse over reverse, forward over reverse and reverse over forward.
// TAGFLOW_RANDOM_GRADIENTS says how many there are, and where they begin:
// "1000" or "1000 5000".
#include <doctest/doctest.h>

#include <cstdlib>
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

}  // namespace

TEST_CASE("derivatives of random programs are what differences say") {
  uint32_t count = 60, first = 1;
  if (const char* text = std::getenv("TAGFLOW_RANDOM_GRADIENTS"))
    std::istringstream(text) >> count >> first;
  const std::vector<Tensor> xs{values({2}, -0.9, 0.9), values({2}, -0.9, 0.9),
                               values({2}, -0.9, 0.9)};
  int wrong = 0;
  uint32_t loops = 0;
  for (uint32_t seed = first; seed < first + count && wrong < 5; ++seed) {
    const auto what = wrong_gradients(
        [&](const graph::Scope& s, const graph::Outputs& x) {
          const graph::Outputs y = RandomProgram(seed).build(s, x);
          loops += has_loop(s.graph());
          return y;
        },
        xs, {.tolerance = 2e-5, .unknown_shapes = false});
    CAPTURE(seed);
    if (!what.ok()) FAIL_CHECK(what.status().to_string());
    if (what.ok() && !what->empty()) FAIL_CHECK(*what);
    wrong += !what.ok() || !what->empty();
  }
  CHECK(loops > count / 3);
}

TEST_CASE("gradients of random recursions are what differences say") {
  uint32_t count = 60, first = 1;
  if (const char* text = std::getenv("TAGFLOW_RANDOM_GRADIENTS"))
    std::istringstream(text) >> count >> first;
  const std::vector<Tensor> xs{values({2}, -0.9, 0.9), values({2}, -0.9, 0.9)};
  int wrong = 0;
  uint32_t recursions = 0;
  for (uint32_t seed = first; seed < first + count && wrong < 5; ++seed) {
    const auto what = wrong_gradients(
        [&](const graph::Scope& s, const graph::Outputs& x) {
          const graph::Outputs y = RandomProgram(seed, true).build(s, x);
          recursions += !s.graph().library().empty();
          return y;
        },
        xs, {.tolerance = 2e-5, .unknown_shapes = false});
    CAPTURE(seed);
    if (!what.ok()) FAIL_CHECK(what.status().to_string());
    if (what.ok() && !what->empty()) FAIL_CHECK(*what);
    wrong += !what.ok() || !what->empty();
  }
  CHECK(recursions > count / 3);
}

TEST_CASE("random programs have the same gradients where parts run again") {
  uint32_t count = 40, first = 1;
  if (const char* text = std::getenv("TAGFLOW_RANDOM_GRADIENTS"))
    std::istringstream(text) >> count >> first;
  const auto results = [](uint32_t seed, bool recomputes) {
    graph::Graph graph;
    const graph::Scope s(graph);
    graph::Outputs xs;
    for (const double x : {0.3, -0.7, 0.5})
      xs.push_back(graph::ops::constant(s, Tensor::of<double>({2}, {x, -x})));
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
  for (uint32_t seed = first; seed < first + count; ++seed) {
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
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    graph::Graph graph;
    const graph::Scope s(graph);
    graph::Outputs xs;
    for (const double x : {0.3, -0.7, 0.5})
      xs.push_back(graph::ops::constant(s, Tensor::of<double>({2}, {x, -x})));
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
