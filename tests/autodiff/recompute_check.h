// Shared by tests of recomputation: programs with and without it, whose results
// have to be the same.
#pragma once

#include <cstring>
#include <functional>

#include "tests/autodiff/evaluate.h"

namespace tagflow::autodiff::testing {

// Whether two tensors are the same, signs of zeros and NaNs included.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// The sum of all elements, as a y.
inline graph::Output sum_of(const graph::Scope& s, const graph::Output& x) {
  return graph::ops::reduce_sum(s, x);
}

// y, its gradients by the xs, and those of the sum of these, of a graph of its
// own.
using Program = std::function<graph::Output(
    const graph::Scope&, const graph::Outputs& xs, bool again)>;
inline std::vector<Tensor> results_of(const Program& program,
                                      const std::vector<Tensor>& xs,
                                      bool again) {
  graph::Graph graph;
  const graph::Scope s(graph);
  graph::Outputs inputs;
  std::vector<actors::Feed> feeds;
  for (const Tensor& x : xs) {
    inputs.push_back(graph::ops::placeholder(s, x.dtype(), {}));
    feeds.push_back({inputs[inputs.size() - 1].name(), x});
  }
  const graph::Output y = program(s, inputs, again);
  graph::Outputs results{y};
  graph::Outputs last{y};
  for (int order = 1; order <= 2; ++order) {
    last = dense_gradients(s, last, inputs, {.zeros_if_unconnected = true});
    for (const graph::Output& gradient : last) results.push_back(gradient);
  }
  return evaluate(s, results, feeds);
}

// Second derivatives are sums in another order.
inline void check_same(const Program& program, const std::vector<Tensor>& xs) {
  const auto kept = results_of(program, xs, false);
  const auto again = results_of(program, xs, true);
  REQUIRE(kept.size() == again.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    CAPTURE(i);
    if (i <= xs.size()) {
      CHECK(same_bits(kept[i], again[i]));
      continue;
    }
    REQUIRE(kept[i].shape() == again[i].shape());
    for (int64_t j = 0; j < kept[i].num_elements(); ++j)
      CHECK(again[i].flat<double>()[size_t(j)] ==
            doctest::Approx(kept[i].flat<double>()[size_t(j)]).epsilon(1e-9));
  }
}

}  // namespace tagflow::autodiff::testing
