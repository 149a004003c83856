// Programs built in a test and run at once: a Scope over a graph of its own.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

namespace tagflow::actors {

// Build with `s`, then run(). Every run compiles the graph as it is then.
struct Program {
  graph::Graph graph;
  graph::Scope s{graph};

  // An input to feed.
  graph::Output input(const char* name, DataType dtype,
                      PartialShape shape = {}) const {
    return graph::ops::placeholder(s.named(name), dtype, std::move(shape));
  }

  Result<std::vector<Tensor>> try_run(
      const std::vector<Feed>& feeds, const graph::Outputs& fetches,
      const SessionOptions& options = {}) const {
    TAGFLOW_RETURN_IF_ERROR(s.status());
    TAGFLOW_ASSIGN(auto session, create_session(options));
    TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
    std::vector<std::string> names, targets;
    for (const graph::Output& fetch : fetches)
      (fetch.is_operation() ? targets : names).push_back(fetch.name());
    return session->run(feeds, names, targets, within_a_minute());
  }
  std::vector<Tensor> run(const std::vector<Feed>& feeds,
                          const graph::Outputs& fetches,
                          const SessionOptions& options = {}) const {
    return graph::testing::must(try_run(feeds, fetches, options));
  }
  // The message of the run's error.
  std::string error(const std::vector<Feed>& feeds,
                    const graph::Outputs& fetches) const {
    const auto results = try_run(feeds, fetches);
    CHECK_FALSE(results.ok());
    return std::string(results.status().message());
  }
};

// The elements of a result.
template <class T>
std::vector<T> elements(const Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return {flat.begin(), flat.end()};
}

}  // namespace tagflow::actors
