// Reads of a variable beside updates of it, which must see whole versions.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/actors/sessions.h"

namespace tagflow::actors {

// In sessions with several numbers of workers, runs "init" and then "add",
// `runs` times on each of `adders` threads, while another thread fetches
// "least" and "most" of what "add" adds the same to: they must be equal.
// `check_end` is called with each session afterwards.
inline void expect_whole_reads(const graph::Graph& graph, int adders, int runs,
                               const std::function<void(Session&)>& check_end) {
  for (const int workers : {1, 2, 4}) {
    CAPTURE(workers);
    SessionOptions options;
    options.workers = workers;
    const auto session = make_session(options, graph);
    graph::testing::must(session->run({}, {}, {"init"}, within_a_minute()));
    std::vector<std::thread> threads;
    std::atomic<int> torn{0};
    for (int t = 0; t < adders; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < runs; ++i)
          if (!session->run({}, {}, {"add"}, within_a_minute()).ok()) ++torn;
      });
    threads.emplace_back([&] {
      for (int i = 0; i < runs; ++i) {
        const auto out =
            session->run({}, {"least", "most"}, {}, within_a_minute());
        if (!out.ok() || !identical((*out)[0], (*out)[1])) ++torn;
      }
    });
    for (std::thread& thread : threads) thread.join();
    CHECK(torn == 0);
    check_end(*session);
  }
}

}  // namespace tagflow::actors
