// Makes and runs sessions for tests.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/file/graphdef.h"
#include "tests/actors/configurations.h"
#include "tests/actors/create_session.h"
#include "tests/graph/hand_made.h"
#include "tests/source_path.h"

namespace tagflow::actors {

// What record_*.py of tests/actors wrote.
inline graph::Graph recorded_graph(std::string_view name) {
  return graph::testing::must(graph::load_graph(
      source_path(fmt::format("tests/actors/data/{}.pb", name))));
}

inline std::unique_ptr<Session> make_session(const SessionOptions& options,
                                             const graph::Graph& graph) {
  auto session = graph::testing::must(create_session(options));
  graph::testing::must(session->extend(graph));
  return session;
}

// Runs after which a signature has its form for them: Note [Forms].
inline constexpr int kEnough = 12;

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
