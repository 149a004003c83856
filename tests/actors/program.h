// Programs built in a test and run at once: a Scope over a graph of its own.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "actors/session.h"
#include "graph/builder/builder.h"

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
    TAGFLOW_ASSIGN(auto session, Session::create(options));
    TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
    std::vector<std::string> names, targets;
    for (const graph::Output& fetch : fetches)
      (fetch.is_operation() ? targets : names).push_back(fetch.name());
    RunOptions run;
    run.timeout = std::chrono::seconds(60);
    return session->run(feeds, names, targets, run);
  }
  std::vector<Tensor> run(const std::vector<Feed>& feeds,
                          const graph::Outputs& fetches,
                          const SessionOptions& options = {}) const {
    auto results = try_run(feeds, fetches, options);
    INFO(results.status().to_string());
    REQUIRE(results.ok());
    return *std::move(results);
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
