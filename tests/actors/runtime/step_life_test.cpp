// Steps that wait for something outside of them, how such waits end, and what a
// step may still change after it was answered.
#include <doctest/doctest.h>
#include <malloc.h>

#include <atomic>
#include <future>
#include <thread>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// "take" waits for what "put" puts.
Graph put_and_take() {
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("take"), test_take(s));
  ops::identity(s.named("put"), test_put(s, 7));
  REQUIRE(s.status().ok());
  return graph;
}

// Answers when it is told to, by whoever holds `answer`.
std::promise<devices::Completion>* asked = nullptr;

class OutsideKernel : public devices::AsyncKernel {
 public:
  explicit OutsideKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    context.set_output(0, context.input(0));
    asked->set_value(std::move(done));
  }
};

void until_waiting(size_t count) {
  while (TestQueue::global().waiting() < count) std::this_thread::yield();
}

// Writes 1 into `assigned`, within a commit, when it is let go.
std::atomic<bool> hold_before{false};  // the commit
std::atomic<bool> hold_inside{false};  // of it
std::atomic<int> stage{0};             // 1: before, 2: inside, 3: through
std::atomic<int> assigned{0};
std::atomic<bool> was_refused{false};
thread_local bool is_in_kernel = false;

class AssignKernel : public devices::Kernel {
 public:
  explicit AssignKernel(const devices::KernelInfo&) {}
  double cost(const devices::KernelContext&) const override { return 1e6; }
  Status compute(devices::KernelContext& context) const override {
    is_in_kernel = true;
    enter(1);
    hold_before.wait(true);
    {
      const devices::Commit commit = context.commit();
      was_refused = !commit;
      enter(2);
      hold_inside.wait(true);
      if (commit) assigned = 1;
    }
    context.set_output(0, context.input(0));
    enter(3);
    is_in_kernel = false;
    return {};
  }

 private:
  static void enter(int now) {
    stage = now;
    stage.notify_all();
  }
};

void until_stage(int wanted) {
  for (int now = stage; now != wanted; now = stage) stage.wait(now);
}

void let_go(std::atomic<bool>& hold) {
  hold = false;
  hold.notify_all();
}

Graph assign() {
  static const bool once = [] {
    OpRegistry::global().add(OpDefBuilder("TestAssign")
                                 .input("x: int32")
                                 .output("y: int32")
                                 .stateful()
                                 .shape(unchanged_shape));
    devices::KernelRegistry::global().add<AssignKernel>("TestAssign");
    return true;
  }();
  (void)once;
  stage = 0;
  assigned = 0;
  was_refused = false;
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"),
                s.op("TestAssign", {s.constant(Tensor::scalar(1))}));
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("smoke: a step waits for a queue until another run puts into it") {
  const Graph graph = put_and_take();
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    Pending take(*session, "take");
    until_waiting(1);
    CHECK_FALSE(take.answered());
    CHECK(must_run(*session, {}, {"put"})[0].scalar_value<int>() == 7);
    const Answer answer = take.get();
    REQUIRE(answer.ok());
    CHECK((*answer)[0].scalar_value<int>() == 7);
    CHECK(TestQueue::global().size() == 0);
  }
}

TEST_CASE("smoke: a wait is named when the time is up") {
  const Graph graph = put_and_take();
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    (void)graph::testing::must(session->make_callable({}, {"take"}));
    RunOptions run;
    run.timeout = std::chrono::milliseconds(100);
    const Status status = session->run({}, {"take"}, {}, run).status();
    CHECK(status.code() == Code::kDeadlineExceeded);
    const std::string text(status.message());
    CAPTURE(text);
    CHECK(text.find("TestTake") != text.npos);
    CHECK(TestQueue::global().waiting() == 0);
    Pending late(*session, "take", run);
    CHECK(late.get().status().code() == Code::kDeadlineExceeded);
    CHECK(TestQueue::global().waiting() == 0);
  }
}

TEST_CASE("ten thousand waits end with their step, whatever ends it") {
  constexpr int kWaits = 10'000;
  Graph graph;
  const Scope s(graph);
  Inputs taken;
  for (int i = 0; i < kWaits; ++i) taken.add(test_take(s));
  ops::add_n(s.named("sum"), taken);
  REQUIRE(s.status().ok());
  enum class End : uint8_t { kCancel, kTimeout, kClose };
  for (const End end : {End::kCancel, End::kTimeout, End::kClose})
    for (const int workers : {1, 2}) {
      auto session = make_session({.workers = workers}, graph);
      RunOptions run;
      if (end == End::kTimeout) run.timeout = std::chrono::milliseconds(500);
      Pending all(*session, "sum", run);
      if (end != End::kTimeout) until_waiting(kWaits);
      if (end == End::kCancel) all.token.cancel();
      if (end == End::kClose) CHECK(session->close().ok());
      const Code code = all.get().status().code();
      CHECK(code == (end == End::kTimeout ? Code::kDeadlineExceeded
                                          : Code::kCancelled));
      session.reset();
      CHECK(TestQueue::global().waiting() == 0);
    }
}

TEST_CASE("smoke: the error of one node ends the waits of the others") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32);
  const Output bad = ops::floor_div(s.named("bad"), 1, x);
  ops::add(s.named("sum"), test_take(s), bad);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    const Status status =
        session->run({{"x", Tensor::scalar(0)}}, {"sum"}).status();
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::kInvalidArgument);
    session.reset();
    CHECK(TestQueue::global().waiting() == 0);
  }
}

TEST_CASE("smoke: runs that wait for one another only are stalled") {
  auto session = make_session({}, put_and_take());
  CHECK_FALSE(session->stalled().has_value());
  Pending first(*session, "take");
  Pending second(*session, "take");
  until_waiting(2);
  // They are in the queue a moment before their steps come to rest.
  std::optional<std::string> why;
  while (!(why = session->stalled())) std::this_thread::yield();
  CAPTURE(*why);
  CHECK(why->find("2 open runs") != why->npos);
  CHECK(why->find("TestTake") != why->npos);
  // The counters follow a moment later.
  CHECK(comes_true([&] { return session->counters().waiting == 2; }));
  CHECK(session->counters().active == 0);
  must_run(*session, {}, {"put"});
  must_run(*session, {}, {"put"});
  CHECK(first.get().ok());
  CHECK(second.get().ok());
  session->close().ok();
  CHECK_FALSE(session->stalled().has_value());
}

TEST_CASE("runs are not stalled beside one that waits for something else") {
  static const bool once = [] {
    OpRegistry::global().add(OpDefBuilder("TestOutside")
                                 .input("x: int32")
                                 .output("y: int32")
                                 .stateful()
                                 .shape(unchanged_shape));
    devices::KernelRegistry::global().add<OutsideKernel>("TestOutside");
    return true;
  }();
  REQUIRE(once);
  Graph graph = put_and_take();
  const Scope s(graph);
  ops::identity(s.named("other"),
                s.op("TestOutside", {s.constant(Tensor::scalar(3))}));
  REQUIRE(s.status().ok());
  // Whichever came first.
  for (const bool take_first : {true, false}) {
    CAPTURE(take_first);
    auto session = make_session({}, graph);
    std::promise<devices::Completion> promise;
    asked = &promise;
    std::deque<Pending> runs;
    runs.emplace_back(*session, take_first ? "take" : "other");
    runs.emplace_back(*session, take_first ? "other" : "take");
    const devices::Completion answer = promise.get_future().get();
    while (session->counters().waiting < 2) std::this_thread::yield();
    CHECK_FALSE(session->stalled().has_value());
    answer({});
    CHECK(runs[take_first ? 1 : 0].get().ok());
    must_run(*session, {}, {"put"});
    CHECK(runs[take_first ? 0 : 1].get().ok());
  }
}

TEST_CASE("smoke: runs that wait do not keep others from their turn") {
  const Graph graph = put_and_take();
  auto session = make_session({.max_active_runs = 1}, graph);
  std::deque<Pending> takes;
  for (int i = 0; i < 10; ++i) takes.emplace_back(*session, "take");
  until_waiting(10);
  for (int i = 0; i < 10; ++i) must_run(*session, {}, {"put"});
  for (Pending& take : takes) CHECK(take.get().ok());
}

TEST_CASE("smoke: a kernel that outlives its step changes nothing any more") {
  const Graph graph = assign();
  auto session = make_session({.workers = 2}, graph);
  (void)graph::testing::must(session->make_callable({}, {"y"}));
  hold_before = true;
  RunOptions run;
  run.timeout = std::chrono::milliseconds(30);
  CHECK(session->run({}, {"y"}, {}, run).status().code() ==
        Code::kDeadlineExceeded);
  until_stage(1);
  let_go(hold_before);
  until_stage(3);
  CHECK(was_refused);
  CHECK(assigned == 0);
  // Without a time-out it may.
  CHECK(session->run({}, {"y"}).ok());
  CHECK(assigned == 1);
}

TEST_CASE("smoke: an answer waits for a change that is being made") {
  const Graph graph = assign();
  auto session = make_session({.workers = 2}, graph);
  hold_inside = true;
  Pending run(*session, "y");
  until_stage(2);
  // Answers at once, but for the commit.
  run.token.cancel();
  CHECK_FALSE(run.answered());
  let_go(hold_inside);
  CHECK(run.get().status().code() == Code::kCancelled);
  CHECK(assigned == 1);
}

TEST_CASE("smoke: `done` is not called by a kernel that ends its change") {
  // Which may have locks of its own.
  const Graph graph = assign();
  auto session = make_session({.workers = 2}, graph);
  hold_inside = true;
  RunOptions options;
  const CancelToken token;
  options.cancel = token;
  std::promise<bool> in_kernel;
  session->run_async({}, {"y"}, {}, options, [&](auto, RunStats) {
    session.reset();  // waits for nothing here
    in_kernel.set_value(is_in_kernel);
  });
  until_stage(2);
  CancelToken(token).cancel();
  let_go(hold_inside);
  CHECK_FALSE(in_kernel.get_future().get());
}

TEST_CASE("a cancelled run is answered in time, whatever a kernel does") {
  const Graph graph = blocked_graph();
  auto session = make_session({}, graph);
  Blockade blockade;
  Pending run(*session, "y");
  blockade.until_begun(1);
  run.token.cancel();
  CHECK(run.get().status().code() == Code::kCancelled);
  blockade.let_go();
}

TEST_CASE("a token that outlives its runs keeps nothing of them") {
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), s.constant(Tensor::scalar(2)));
  REQUIRE(s.status().ok());
  auto session = make_session({}, graph);
  RunOptions run;
  run.cancel.emplace();
  const auto run_often = [&] {
    for (int i = 0; i < 5'000; ++i)
      REQUIRE(session->run({}, {"y"}, {}, run).ok());
  };
  run_often();
  const size_t before = mallinfo2().uordblks;
  run_often();
  // Of each run there would be more than 400 bytes.
  CHECK(mallinfo2().uordblks < before + 500'000);
  CHECK_FALSE(run.cancel->cancelled());
  run.cancel->cancel();
  CHECK(session->run({}, {"y"}, {}, run).status().code() == Code::kCancelled);
}

TEST_CASE("a time-out may end a run before an earlier one ends its own") {
  auto session = make_session({}, put_and_take());
  Pending patient(*session, "take", {.timeout = std::chrono::hours(1)});
  for (int i = 0; i < 20; ++i) {
    Pending hasty(*session, "take", {.timeout = std::chrono::milliseconds(1)});
    CHECK(hasty.get().status().code() == Code::kDeadlineExceeded);
  }
  CHECK_FALSE(patient.answered());
  must_run(*session, {}, {"put"});
  CHECK(patient.get().ok());
}
