// Helpers that build the graphs of the workloads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/bench/graphs.h"
#include "graph/builder/builder.h"

namespace tagflow::apps {

// A graph under construction and its scope. Must not be moved.
class Building {
 public:
  const graph::Scope& scope() const { return scope_; }

  // The graph with its feeds and fetches, the targets of a run, and the targets
  // that run once before. Returns the first error of the scope, if any.
  // REQUIRES: it is called once, and last.
  Result<BenchGraph> done(std::vector<std::string> feeds,
                          const graph::Outputs& fetches,
                          const graph::Outputs& targets = {},
                          const graph::Outputs& init = {}) {
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    BenchGraph result;
    result.feeds = std::move(feeds);
    for (const graph::Output& o : fetches) result.fetches.push_back(o.name());
    for (const graph::Output& o : targets) {
      result.targets.push_back(o.node()->name());
    }
    for (const graph::Output& o : init) result.init.push_back(o.node()->name());
    result.graph = std::move(graph_);
    return result;
  }

 private:
  graph::Graph graph_;
  graph::Scope scope_{graph_};
};

// The number of trips, to be fed.
inline graph::Output trip_count(const graph::Scope& s) {
  return graph::ops::placeholder(s.named("n"), DataType::kInt32,
                                 PartialShape::scalar());
}

// A value that passes cannot treat as a constant, since it can be fed.
inline graph::Output opaque(const graph::Scope& s, Tensor value) {
  const PartialShape shape = value.shape();
  return graph::ops::placeholder_with_default(
      s, graph::ops::constant(s, std::move(value)), shape);
}

// Floats in [-1, 1), the same in every process.
inline Tensor pseudo_random(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  uint32_t state = 12345;
  for (float& value : tensor.mutable_flat<float>()) {
    state = state * 1664525u + 1013904223u;
    value = float(int32_t(state)) / 2147483648.0f;
  }
  return tensor;
}

}  // namespace tagflow::apps
