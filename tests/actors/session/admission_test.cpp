// Runs beyond the limit of a session wait for their turn.
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <future>
#include <semaphore>
#include <thread>

#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

RunOptions within(std::chrono::milliseconds time) {
  RunOptions options;
  options.timeout = time;
  return options;
}

}  // namespace

TEST_CASE("smoke: runs beyond the limit wait for their turn, to a limit") {
  auto session = make_session({.max_active_runs = 2, .max_queued_runs = 3},
                              blocked_graph());
  Blockade blockade;
  std::deque<Pending> runs;
  for (int i = 0; i < 5; ++i) runs.emplace_back(*session, "y");
  CHECK(session->counters().active == 2);
  CHECK(session->counters().queued == 3);
  CHECK(session->counters().waiting == 0);
  runs.emplace_back(*session, "y");
  CHECK(runs.back().get().status().code() == Code::kResourceExhausted);
  runs.pop_back();
  blockade.let_go();
  for (Pending& run : runs) CHECK(run.get().ok());
  CHECK(session->close().ok());
  CHECK(session->counters().active == 0);
  CHECK(session->counters().queued == 0);
}

TEST_CASE("smoke: runs that wait for their turn end with the session") {
  auto session = make_session({.max_active_runs = 1}, blocked_graph());
  Blockade blockade;
  std::deque<Pending> runs;
  for (int i = 0; i < 4; ++i) runs.emplace_back(*session, "y");
  blockade.until_begun(1);
  (void)session->close(std::chrono::milliseconds(0)).ok();
  for (size_t i = 1; i < runs.size(); ++i)
    CHECK(runs[i].get().status().code() == Code::kCancelled);
  blockade.let_go();
  CHECK(runs[0].get().status().code() == Code::kCancelled);
}

TEST_CASE("smoke: a run that ends before its turn leaves the queue") {
  auto session = make_session({.max_active_runs = 1}, blocked_graph());
  Blockade blockade;
  Pending first(*session, "y");
  blockade.until_begun(1);
  for (int i = 0; i < 20; ++i) {
    const Status late =
        session->run({}, {"y"}, {}, within(std::chrono::milliseconds(1)))
            .status();
    CHECK(late.code() == Code::kDeadlineExceeded);
    CHECK(late.message().find("waiting for its turn") != std::string::npos);
  }
  Pending late(*session, "y", within(std::chrono::milliseconds(1)));
  CHECK(late.get().status().code() == Code::kDeadlineExceeded);
  Pending cancelled(*session, "y");
  cancelled.token.cancel();
  CHECK(cancelled.get().status().code() == Code::kCancelled);
  CHECK(session->counters().queued == 0);
  Pending last(*session, "y");
  CHECK(session->counters().queued == 1);
  blockade.let_go();
  CHECK(first.get().ok());
  CHECK(last.get().ok());
  CHECK(session->close().ok());
}

TEST_CASE("smoke: run() that waits for its turn takes no place in the queue") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 1},
                              blocked_graph());
  Blockade blockade;
  Pending first(*session, "y");
  blockade.until_begun(1);
  std::thread waits([&] { CHECK(session->run({}, {"y"}).ok()); });
  while (session->counters().queued == 0) std::this_thread::yield();
  Pending second(*session, "y");
  Pending third(*session, "y");
  CHECK(third.get().status().code() == Code::kResourceExhausted);
  blockade.let_go();
  waits.join();
  CHECK(first.get().ok());
  CHECK(second.get().ok());
}

TEST_CASE("smoke: a run that goes on after a wait counts as active again") {
  TestQueue::global().clear();
  Graph graph = blocked_graph();
  const Scope s(graph);
  ops::identity(s.named("z"), test_block(s, test_take(s)));
  REQUIRE(s.status().ok());
  auto session = make_session({.workers = 2, .max_active_runs = 1}, graph);
  Blockade blockade;
  Pending first(*session, "z");
  Pending second(*session, "z");
  while (TestQueue::global().waiting() < 2 || session->counters().active > 0)
    std::this_thread::yield();
  CHECK(session->counters().waiting == 2);
  TestQueue::global().put(1);
  TestQueue::global().put(2);
  blockade.until_begun(2);
  CHECK(session->counters().active == 2);
  Pending third(*session, "y");
  CHECK(session->counters().queued == 1);
  blockade.let_go();
  for (Pending* run : {&first, &second, &third}) CHECK(run->get().ok());
}

TEST_CASE("smoke: a run has given back its place when its answer is there") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 0},
                              blocked_graph());
  constexpr int kRuns = 10;
  std::promise<Code> last;
  std::function<void(int)> start = [&](int left) {
    session->run_async({}, {"y"}, {}, {}, [&, left](Answer answer, RunStats) {
      CHECK(session->counters().active == 0);
      if (answer.ok() && left > 0) return start(left - 1);
      last.set_value(answer.ok() ? Code::kOk : answer.status().code());
    });
  };
  start(kRuns);
  CHECK(last.get_future().get() == Code::kOk);
  CHECK(session->close().ok());  // no `done` is still inside of `start`
}

TEST_CASE("smoke: a `done` that takes long holds up no other time-out") {
  // It is called when the run is given up, whose kernel nothing interrupts.
  TestQueue::global().clear();
  Graph graph = blocked_graph();
  const Scope s(graph);
  ops::identity(s.named("take"), test_take(s));
  REQUIRE(s.status().ok());
  auto session = make_session({.workers = 2}, graph);
  // Otherwise its compilation could take all of the time, on this thread.
  must_run(*session, {}, {"y"});
  Blockade blockade;
  std::binary_semaphore entered{0}, go_on{0}, left{0};
  session->run_async({}, {"y"}, {}, within(std::chrono::milliseconds(1)),
                     [&](Answer, RunStats) {
                       entered.release();
                       go_on.acquire();
                       left.release();
                     });
  entered.acquire();
  // The one ends by itself, the other is given up as the first is.
  for (const char* fetch : {"take", "y"}) {
    INFO(fetch);
    Pending late(*session, fetch, within(std::chrono::milliseconds(1)));
    REQUIRE(late.future.wait_for(std::chrono::seconds(60)) ==
            std::future_status::ready);
    CHECK(late.get().status().code() == Code::kDeadlineExceeded);
  }
  go_on.release();
  left.acquire();
}

TEST_CASE("a run() waits for its turn though the queue has no places") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 0},
                              blocked_graph());
  must_run(*session, {}, {"y"});
  Blockade blockade;
  Pending first(*session, "y");
  blockade.until_begun(1);
  auto second = std::async(std::launch::async,
                           [&] { return session->run({}, {"y"}).status(); });
  while (session->counters().queued == 0 &&
         second.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    std::this_thread::yield();
  CHECK(session->counters().queued == 1);
  blockade.let_go();
  CHECK(first.get().ok());
  CHECK(second.get().ok());
}

TEST_CASE("whatever ends a queued run, its place is the next one's") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 1},
                              blocked_graph());
  Blockade blockade;
  Pending first(*session, "y");
  blockade.until_begun(1);
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    Pending cancelled(*session, "y");
    CHECK(session->counters().queued == 1);
    cancelled.token.cancel();
    CHECK(cancelled.get().status().code() == Code::kCancelled);
    Pending late(*session, "y", within(std::chrono::milliseconds(1)));
    CHECK(late.get().status().code() == Code::kDeadlineExceeded);
    // Cancelled before it comes, it takes no place either.
    RunOptions options;
    options.cancel.emplace();
    options.cancel->cancel();
    std::promise<Code> code;
    session->run_async({}, {"y"}, {}, options, [&](Answer answer, RunStats) {
      code.set_value(answer.status().code());
    });
    CHECK(code.get_future().get() == Code::kCancelled);
    CHECK(session->run({}, {"y"}, {}, options).status().code() ==
          Code::kCancelled);
    CHECK(session->counters().queued == 0);
  }
  Pending last(*session, "y");
  Pending refused(*session, "y");
  CHECK(refused.get().status().code() == Code::kResourceExhausted);
  blockade.let_go();
  CHECK(first.get().ok());
  CHECK(last.get().ok());
  CHECK(session->close().ok());
  CHECK(session->counters().active == 0);
}

TEST_CASE("however a run fails, its place is the next one's") {
  Graph graph = blocked_graph();
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  ops::floor_div(s.named("ratio"), 12, x);
  s.named("sw").op("Switch", {x, s.constant(Tensor::scalar(false))});
  while_loop(
      s.named("endless"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 1); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::mul(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.status().ok());
  std::string endless;
  for (const Node* node : graph.nodes())
    if (node->op() == "Exit") endless = node->name();
  auto session =
      make_session({.max_active_runs = 1, .max_queued_runs = 1}, graph);
  const auto ratio_of = [](int value) {
    return std::vector<Feed>{{"x", Tensor::scalar(value)}};
  };
  const auto next = [&] {
    CHECK(session->counters().active == 0);
    return session->run(ratio_of(4), {"ratio"}, {}, within_a_minute()).status();
  };
  CHECK_FALSE(session->run(ratio_of(0), {"ratio"}, {}, within_a_minute()).ok());
  CHECK(next().ok());
  CHECK_FALSE(session->run(ratio_of(1), {"sw:1"}, {}, within_a_minute()).ok());
  CHECK(next().ok());
  CHECK(session->run({}, {endless}, {}, within(std::chrono::milliseconds(1)))
            .status()
            .code() == Code::kDeadlineExceeded);
  // Its answer may come before its end.
  CHECK(comes_true([&] { return session->counters().active == 0; }));
  CHECK(next().ok());
  // With one that is queued behind.
  Blockade blockade;
  Pending cancelled(*session, "y");
  blockade.until_begun(1);
  Pending queued(*session, ratio_of(4), {"ratio"}, within_a_minute());
  CHECK(session->counters().queued == 1);
  cancelled.token.cancel();
  blockade.let_go();
  CHECK(cancelled.get().status().code() == Code::kCancelled);
  CHECK(queued.get().ok());
  CHECK(next().ok());
}

TEST_CASE("queued runs start in their order, past those that are cancelled") {
  Graph graph;
  const Scope s(graph);
  for (const std::string name : {"a", "b", "c", "d"})
    test_block(s.named(name), s.constant(Tensor::scalar(2)));
  REQUIRE(s.status().ok());
  auto session = make_session({.max_active_runs = 1}, graph);
  Blockade blockade;
  Pending a(*session, "a");
  blockade.until_begun(1);
  Pending b(*session, "b"), c(*session, "c"), d(*session, "d");
  b.token.cancel();
  CHECK(b.get().status().code() == Code::kCancelled);
  blockade.let_go();
  for (Pending* run : {&a, &c, &d}) CHECK(run->get().ok());
  CHECK(blockade.order() == std::vector<std::string>{"a", "c", "d"});
}

TEST_CASE("`done` of a run that was given up must not wait for another") {
  Graph graph = blocked_graph();
  const Scope s(graph);
  ops::identity(s.named("other"), s.constant(Tensor::scalar(3)));
  auto session = make_session({.workers = 2}, graph);
  must_run(*session, {}, {"other"});
  Blockade blockade;
  std::promise<std::pair<Code, Code>> codes;
  session->run_async(
      {}, {"y"}, {}, within(std::chrono::milliseconds(1)),
      [&](Answer answer, RunStats) {
        codes.set_value({answer.status().code(),
                         session->run({}, {"other"}).status().code()});
      });
  const auto [code, other] = codes.get_future().get();
  CHECK(code == Code::kDeadlineExceeded);
  CHECK(other == Code::kFailedPrecondition);
}
