// Sessions as tests make and run them.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/actors/configurations.h"
#include "tests/graph/hand_made.h"

namespace tagflow::actors {

inline std::unique_ptr<Session> make_session(const SessionOptions& options,
                                             const graph::Graph& graph) {
  auto session = graph::testing::must(Session::create(options));
  graph::testing::must(session->extend(graph));
  return session;
}

// For what should end long before: a test that hangs fails.
inline RunOptions within_a_minute() {
  RunOptions options;
  options.timeout = std::chrono::seconds(60);
  return options;
}

inline std::vector<Tensor> must_run(Session& session,
                                    const std::vector<Feed>& feeds,
                                    const std::vector<std::string>& fetches,
                                    RunStats* stats = nullptr) {
  return graph::testing::must(
      session.run(feeds, fetches, {}, within_a_minute(), stats));
}

}  // namespace tagflow::actors
