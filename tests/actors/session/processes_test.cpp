// One step over several processes, whose partitions meet over a network that
// delays and reorders: the engine's side of a cluster, without a socket.
#include "tests/actors/processes.h"

#include <doctest/doctest.h>

#include "tests/actors/engine_check.h"
#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

// The expected fetches that come: over processes, what never comes is waited
// for until the time-out.
Status check(const reference::Case& c,
             const reference::Interpretation& expected,
             const SessionOptions& options) {
  reference::Case coming{c.graph.clone(), c.feeds, {}};
  reference::Interpretation outcomes;
  for (size_t i = 0; i < c.fetches.size(); ++i) {
    if (expected.fetches[i].state == reference::State::kAbsent) continue;
    coming.fetches.push_back(c.fetches[i]);
    outcomes.fetches.push_back(expected.fetches[i]);
  }
  return check_engine(coming, outcomes, options);
}

}  // namespace

TEST_CASE("random graphs over several processes agree with the reference") {
  for (const int count : {2, 3}) {
    const auto processes = std::make_shared<Processes>(
        count, count == 2 ? "cpu:2" : "cpu:1,stream:1", 2, uint64_t(count));
    int cut = 0;
    for (uint64_t seed = 900'000; seed < 900'060; ++seed) {
      const auto c = reference::random_graph(seed);
      REQUIRE(c.ok());
      const auto expected =
          reference::interpret(c->graph, c->feeds, c->fetches);
      REQUIRE(expected.ok());
      if (expected->is_ambiguous) continue;
      SessionOptions options = configuration(seed * 7);
      options.backend = processes;
      options.scatter = seed;
      INFO(count, " processes, seed ", seed, ", ", describe(options));
      const Status status = check(*c, *expected, options);
      INFO(status.to_string());
      CHECK(status.ok());
      cut += processes->parts() > 1 ? 1 : 0;
    }
    CHECK(cut > 20);
  }
}

namespace {

// A loop of 1,000 trips on task 0, whose body on task 1 fails in trip "bad".
struct CutLoop : actors::Program {
  CutLoop() {
    const Output bad = input("bad", DataType::kInt32);
    const Outputs last = while_loop(
        s.named("loop"),
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 1000);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope there = in.with_device("/job:worker/task:1");
          const Output check = ops::assert_(
              there, ops::not_equal(there, v[0], bad), {"a bad trip"});
          const Output next =
              ops::add(there.with_control_dependencies({check}), v[0], 1);
          return {ops::identity(in.with_device("/job:worker/task:0"), next)};
        },
        {ops::constant(s, 0)});
    out = last[0];
    must(s.status());
  }
  Result<int32_t> run(Session& session, int bad) const {
    TAGFLOW_ASSIGN(const auto results,
                   session.run({{"bad", Tensor::scalar(bad)}}, {out.name()}, {},
                               within_a_minute()));
    return results[0].item<int32_t>();
  }

  Output out;
};

}  // namespace

TEST_CASE("an error in one process ends the parts of all, which run again") {
  const CutLoop p;
  const auto processes = std::make_shared<Processes>(2, "cpu:1", 1, 7);
  SessionOptions options;
  options.backend = processes;
  const auto session = make_session(options, p.graph);
  for (const int bad : {500, -1, 0, -1}) {
    CAPTURE(bad);
    const Result<int32_t> answer = p.run(*session, bad);
    INFO(answer.status().to_string());
    CHECK(processes->parts() == 2);
    if (bad < 0) {
      CHECK(must(answer) == 1000);
    } else {
      CHECK(answer.status().code() == Code::kInvalidArgument);
      CHECK(contains(answer.status().message(), "a bad trip"));
    }
  }
}

TEST_CASE("a variable of one process keeps its value from step to step") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, 1);
  ops::assign_add(there.named("more"), v, p.input("x", DataType::kInt32));
  ops::identity(p.s.with_device("/job:worker/task:0").named("read"),
                ops::read(there, v));
  must(p.s.status());
  SessionOptions options;
  options.backend = std::make_shared<Processes>(2, "cpu:1", 1, 3);
  const auto session = make_session(options, p.graph);
  must(session->run({}, {}, {"init"}, within_a_minute()));
  for (int i = 0; i < 3; ++i)
    must(session->run({{"x", Tensor::scalar(10)}}, {}, {"more"},
                      within_a_minute()));
  CHECK(must(must_run(*session, {}, {"read"})[0].item<int32_t>()) == 31);
  must(session->reset({""}));
  CHECK_FALSE(session->run({}, {"read"}, {}, within_a_minute()).ok());
}

TEST_CASE("a wait in one process is named by the step, and can be cancelled") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Queue queue =
      ops::fifo_queue(there.named("q"), {DataType::kInt32},
                      {.shapes = {PartialShape::scalar()}});
  ops::identity(p.s.with_device("/job:worker/task:0").named("taken"),
                ops::dequeue(there.named("take"), queue)[0]);
  must(p.s.status());
  SessionOptions options;
  options.backend = std::make_shared<Processes>(2, "cpu:1", 1, 3);
  const auto session = make_session(options, p.graph);
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(50);
  const std::string message = message_of(
      session->run({}, {"taken"}, {}, soon).status(), Code::kDeadlineExceeded);
  CHECK(contains(message, "time-out of 0.05 s"));
  must(session->close());
}
