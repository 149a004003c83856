// Critical sections and session tensors, in graphs that TensorFlow wrote
// (record_session_state.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

TEST_CASE("a critical section loses no increment of any step") {
  const Graph graph = recorded_graph("session_state");
  constexpr int kThreads = 4, kSteps = 25;
  for (const SessionOptions& options : configurations()) {
    INFO("workers ", options.workers);
    const auto session = make_session(options, graph);
    must(session->run({}, {}, {"init"}, within_a_minute()));
    std::vector<std::vector<int32_t>> taken(kThreads);
    std::vector<std::thread> threads;
    for (std::vector<int32_t>& mine : taken)
      threads.emplace_back([&session, &mine] {
        for (int i = 0; i < kSteps; ++i) {
          const auto result =
              session->run({}, {"taken"}, {}, within_a_minute());
          if (result.ok()) mine.push_back((*result)[0].scalar_value<int32_t>());
        }
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<int32_t> all;
    for (const std::vector<int32_t>& mine : taken) {
      CHECK(std::ranges::is_sorted(mine));
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::ranges::sort(all);
    REQUIRE(all.size() == kThreads * kSteps);
    for (int32_t i = 0; i < kThreads * kSteps; ++i)
      REQUIRE(all[size_t(i)] == i);
  }
}

TEST_CASE("a tensor stays in the session until it is deleted") {
  const auto session = make_session({}, recorded_graph("session_state"));
  const Tensor value = Tensor::vector<float>({1, 2});
  const Tensor first = must_run(*session, {{"value", value}}, {"handle"})[0];
  const Tensor second = must_run(*session, {{"value", value}}, {"handle"})[0];
  const auto again = [&](const Tensor& handle) {
    return session->run({{"kept", handle}}, {"again"}, {}, within_a_minute());
  };
  for (int round = 0; round < 2; ++round) {
    const Tensor kept = must(again(first))[0];
    CHECK(kept.flat<float>()[0] == 2);
    CHECK(kept.flat<float>()[1] == 4);
  }
  must(session->run({{"kept", first}}, {}, {"delete"}, within_a_minute()));
  CHECK_FALSE(again(first).ok());
  CHECK(again(second).ok());
  CHECK_FALSE(again(Tensor::of<std::string>({}, {"nothing"})).ok());
}
