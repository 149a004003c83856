// Sessions as tests make and run them, and every way in which they may run.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/session.h"
#include "tests/graph/hand_made.h"

namespace tagflow::actors {

inline constexpr HandOff kHandOffs[] = {HandOff::kDirect, HandOff::kMailbox,
                                        HandOff::kRandom};

// Every way to run the same graph.
inline std::vector<SessionOptions> configurations() {
  std::vector<SessionOptions> all;
  for (const HandOff hand_off : kHandOffs)
    for (const int workers : {1, 2})
      for (const bool compile : {true, false}) {
        SessionOptions options;
        options.hand_off = hand_off;
        options.workers = workers;
        if (!compile) options.passes = graph::PassSet::none();
        all.push_back(options);
      }
  return all;
}

inline std::string describe(const SessionOptions& options) {
  return fmt::format("policy {}, workers {}, window {}, passes {}",
                     int(options.hand_off), options.workers, options.window,
                     options.passes.to_string());
}

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
