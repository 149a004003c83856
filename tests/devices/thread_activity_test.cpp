#include "devices/thread_activity.h"

#include <doctest/doctest.h>

#include <thread>

#include "graph/graph.h"

using namespace tagflow;           // NOLINT: tests
using namespace tagflow::devices;  // NOLINT

TEST_CASE("a step's work is described while a thread does it") {
  graph::Graph graph;
  const graph::Node& node = *graph.add("n", "NoOp", {}, {}).value();
  const std::string device = "/cpu:0";
  const StepInfo step, other;
  CHECK(describe_work(step).empty());
  std::thread([&] {
    {
      const StepWork work(step, node, device);
      CHECK(describe_work(step).find("NoOp \"n\" has run on /cpu:0 for ") == 0);
      CHECK(describe_work(other).empty());
      const FreedElements few("list", 3);
      CHECK(describe_work(step).find("has run") != std::string::npos);
      const FreedElements many("stack", 10'000'000);
      CHECK(describe_work(step) ==
            "a stack of 10000000 elements is being freed");
    }
    CHECK(describe_work(step).empty());
    const StepWork end(step);
    CHECK(describe_work(step) == "its values are being freed");
  }).join();
  CHECK(describe_work(step).empty());
}
