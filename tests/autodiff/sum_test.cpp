#include "autodiff/sum.h"

#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT
using graph::Graph;
using graph::Output;
using graph::Outputs;
using graph::Scope;
namespace ops = graph::ops;

namespace {

// What one node of the engine may have.
constexpr size_t kMostInputs = 65535;

}  // namespace

TEST_CASE(
    "a tensor that is used more often than a node may read has a gradient") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 3.0);
  const Output many =
      ops::add_n(s, std::vector<Output>(kMostInputs, ops::square(s, x)));
  const Output more = ops::add_n(s, std::vector<Output>(kMostInputs, x));
  const Output y = ops::add(s, ops::add(s, many, more), x);
  CHECK(numbers(s, dense_gradients(s, {y}, {x})) ==
        Doubles{6. * kMostInputs + kMostInputs + 1});
}

TEST_CASE("rows of more gradients than a node may read stay in order") {
  Graph graph;
  const Scope s(graph);
  std::vector<Output> rows(kMostInputs, ops::constant(s, {1.0}));
  rows.push_back(ops::constant(s, {2.0, 3.0}));
  const Tensor all = evaluate(s, {joined(s, rows)})[0];
  REQUIRE(all.num_elements() == int64_t(kMostInputs) + 2);
  const auto values = all.data<double>();
  CHECK(values[0] == 1);
  CHECK(values[kMostInputs - 1] == 1);
  CHECK(values[kMostInputs] == 2);
  CHECK(values[kMostInputs + 1] == 3);
}

TEST_CASE("a single term is its own sum") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 3.0);
  CHECK(sum_of(s, {x}).endpoint() == x.endpoint());
}
