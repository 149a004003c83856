// Values that enter a frame, stay there and leave it, in every configuration.
#include "actors/runtime/frame_actor.h"

#include <doctest/doctest.h>

#include "tests/actors/counting_loop.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using tagflow::graph::testing::const_def;
using tagflow::graph::testing::contains;
using tagflow::graph::testing::def;

namespace {

std::vector<Feed> feeds(int n) { return {{"n", Tensor::scalar(n)}}; }

std::vector<Feed> feeds(int n, bool p) {
  return {{"n", Tensor::scalar(n)}, {"p", Tensor::scalar(p)}};
}

Tensor large(float value) {
  const std::vector<float> values(100, value);
  return Tensor::of<float>({100}, std::span<const float>(values));
}

}  // namespace

TEST_CASE("an Exit that was never live is dead, though another one was live") {
  const Graph graph =
      counting_loop({placeholder_def("p", DataType::kBool),
                     def("choice", "Enter", {"p"}, into_loop(true)),
                     def("gate", "Switch", {"switch", "choice"}),
                     def("other_exit", "Exit", {"gate:1"}),
                     def("other", "Neg", {"other_exit"}),
                     def("either", "Merge", {"other", "exit", "^other"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (const int n : {0, 3}) {
      CHECK(must_run(*session, feeds(n, true), {"other"})[0]
                .scalar_value<int32_t>() == -n);
      const auto dead = session->run(feeds(n, false), {"exit", "other"}, {},
                                     within_a_minute());
      CHECK(dead.status().code() == Code::kInvalidArgument);
      CAPTURE(dead.status().message());
      CHECK(contains(dead.status().message(), "Switch \"gate\""));
      CHECK(must_run(*session, feeds(n, false), {"either"})[0]
                .scalar_value<int32_t>() == n);
    }
  }
}

// What reads the dead constant is dead in each iteration, and does not run with
// what its slot may hold of an earlier step.
TEST_CASE("a loop constant that is dead is not taken for one that is there") {
  const Graph graph = counting_loop(
      {placeholder_def("p", DataType::kBool),
       placeholder_def("x", DataType::kInt32),
       def("branch", "Switch", {"x", "p"}), def("taken", "Neg", {"branch:1"}),
       def("constant", "Enter", {"taken"}, into_loop(true)),
       def("both", "AddV2", {"switch", "constant"}),
       def("alone", "Identity", {"switch"}),
       def("wait", "Merge", {"both", "alone"}),
       def("index", "Exit", {"wait:1"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (const bool p : {true, false, true, false}) {
      std::vector<Feed> fed = feeds(3, p);
      fed.emplace_back("x", Tensor::scalar(5));
      const int index =
          must_run(*session, fed, {"index"})[0].scalar_value<int32_t>();
      // With both alive, either may come first.
      if (!p) CHECK(index == 1);
    }
  }
}

TEST_CASE("an Exit that is live in two iterations is refused") {
  const Graph graph = counting_loop({def("again", "Exit", {"switch:1"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    CHECK(must_run(*session, feeds(1), {"again"})[0].scalar_value<int32_t>() ==
          0);
    const auto twice = session->run(feeds(3), {"again"}, {}, within_a_minute());
    CHECK(twice.status().code() == Code::kInvalidArgument);
    CHECK(contains(
        twice.status().message(),
        "[Exit] node \"again\" was live a second time, in iteration \"loop/"));
    // And the session goes on.
    CHECK(must_run(*session, feeds(4), {"exit"})[0].scalar_value<int32_t>() ==
          4);
  }
}

// v = v + big + x in each trip, where big is known to the plan.
TEST_CASE("a frame keeps only the plan's constants from run to run") {
  const Graph graph =
      counting_loop({placeholder_def("x", DataType::kFloat, {100}),
                     const_def("big", large(1)),
                     def("in_big", "Enter", {"big"}, into_loop(true)),
                     def("in_x", "Enter", {"x"}, into_loop(true)),
                     def("once", "AddV2", {"v_switch:1", "in_big"}),
                     def("twice", "AddV2", {"once", "in_x"})},
                    loop_variable("v", "x", "twice", DataType::kFloat));
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (const float value : {2.f, 5.f, 7.f}) {
      const Tensor fed = large(value);
      std::vector<Feed> with_x = feeds(3);
      with_x.emplace_back("x", fed);
      const Tensor v = must_run(*session, with_x, {"v_exit"})[0];
      with_x.clear();
      CHECK(v.flat<float>()[99] == value + 3 * (1 + value));
      CHECK(fed.unique());
    }
  }
}

// What enters once is there in iteration 0 alone: later the sum waits for ever,
// with one of its inputs.
TEST_CASE("a frame lets go of what nodes hold that never ran") {
  const Graph graph =
      counting_loop({placeholder_def("x", DataType::kFloat, {100}),
                     def("once", "Enter", {"x"}, into_loop()),
                     def("sum", "AddV2", {"v_switch:1", "once"}),
                     def("sum_exit", "Exit", {"sum"})},
                    loop_variable("v", "x", "v_switch:1", DataType::kFloat));
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    const Tensor fed = large(2);
    {
      std::vector<Feed> with_x = feeds(3);
      with_x.emplace_back("x", fed);
      const auto out = must_run(*session, with_x, {"sum_exit", "v_exit"});
      CHECK(out[0].flat<float>()[0] == 4);
      CHECK(out[1].flat<float>()[0] == 2);
    }
    CHECK(fed.unique());
  }
}
