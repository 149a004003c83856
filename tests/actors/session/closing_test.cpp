// Sessions that are closed while runs go on, and shared engines.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <semaphore>
#include <thread>

#include "actors/plan/distribute.h"
#include "actors/session/session_state.h"
#include "actors/watch/observer.h"
#include "graph/placement/cost_model.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// y = n, counted up to.
Graph counting_loop() {
  Graph graph;
  const Scope s(graph);
  const Output n =
      ops::placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Outputs r = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in, v[0], 1);
      },
      {0});
  ops::identity(s.named("y"), r[0]);
  REQUIRE(s.status().ok());
  return graph;
}

constexpr int kForEver = 2'000'000'000;

// Counts the runs that have begun.
struct Begun : Observer {
  void on_frame_start(const Location& location, const Location&) override {
    if (location.frame.empty()) ++runs;
  }
  std::atomic<int> runs{0};
};

size_t num_threads() {
  size_t count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task"))
    count += task.exists() ? 1 : 0;
  return count;
}

// The exit status of a forked child that runs `body`.
template <class F>
int in_child(const F& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("smoke: a session ends while other threads are inside of run") {
  const Graph graph = counting_loop();
  for (const SessionOptions& options : hand_offs_by_workers()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    must_run(*session, {{"n", Tensor::scalar(1)}}, {"y"});
    Begun begun;
    std::vector<std::future<Code>> codes;
    for (int i = 0; i < 4; ++i)
      codes.push_back(std::async(std::launch::async, [&, raw = session.get()] {
        RunOptions run;
        run.observer = &begun;
        return raw->run({{"n", Tensor::scalar(kForEver)}}, {"y"}, {}, run)
            .status()
            .code();
      }));
    while (begun.runs < 4) std::this_thread::yield();
    session.reset();
    for (auto& code : codes) CHECK(code.get() == Code::kCancelled);
  }
}

TEST_CASE("smoke: a session that was closed refuses what comes") {
  auto session = make_session({}, counting_loop());
  const Callable call =
      graph::testing::must(session->make_callable({"n"}, {"y"}));
  CHECK(session->close().ok());
  CHECK(session->close().ok());
  const std::vector<Tensor> feeds{Tensor::scalar(3)};
  CHECK(call(feeds).status().code() == Code::kFailedPrecondition);
  const auto refused = [](const Status& status) {
    INFO(status.to_string());
    CHECK(status.code() == Code::kFailedPrecondition);
  };
  refused(session->run({{"n", feeds[0]}}, {"y"}).status());
  refused(session->make_callable({"n"}, {"y"}).status());
  refused(session->explain({"n"}, {"y"}).status());
  refused(session->learn({}));
  refused(session->extend(counting_loop()));
  std::promise<Code> code;
  call.run_async(feeds, {}, [&](Answer answer, RunStats) {
    code.set_value(answer.status().code());
  });
  CHECK(code.get_future().get() == Code::kFailedPrecondition);
}

TEST_CASE(
    "smoke: closing gives up at its deadline, and what is left is freed") {
  const Graph graph = blocked_graph();
  auto session = make_session({}, graph);
  Blockade blockade;
  Pending run(*session, "y");
  blockade.until_begun(1);
  const Status status = session->close(std::chrono::milliseconds(5));
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(status.message().find("still has 1 open run after") !=
        std::string_view::npos);
  blockade.let_go();
  CHECK(run.get().status().code() == Code::kCancelled);
  CHECK(session->close().ok());
}

TEST_CASE("smoke: a session that was left is let go of without a wait") {
  const Graph graph = blocked_graph();
  auto session = make_session({}, graph);
  Blockade blockade;
  Pending run(*session, "y");
  blockade.until_begun(1);
  CHECK(session->close(std::chrono::milliseconds(1)).code() ==
        Code::kDeadlineExceeded);
  session.reset();  // while its kernel blocks
  blockade.let_go();
  CHECK(run.get().status().code() == Code::kCancelled);
}

TEST_CASE("smoke: close() waits until each `done` has returned") {
  const Graph graph = blocked_graph();
  auto session = make_session({.max_active_runs = 1}, graph);
  Blockade blockade;
  Pending first(*session, "y");
  blockade.until_begun(1);
  // Cancelled before its turn, it is answered by who cancels.
  std::binary_semaphore entered{0}, go_on{0};
  std::atomic<bool> returned = false;
  std::vector<Code> codes;
  RunOptions options;
  options.cancel.emplace();
  session->run_async({}, {"y"}, {}, options, [&](Answer answer, RunStats) {
    codes.push_back(answer.status().code());
    codes.push_back(session->run({}, {"y"}).status().code());
    codes.push_back(session->close().code());
    entered.release();
    go_on.acquire();
    returned = true;
  });
  std::thread cancels([&] { options.cancel->cancel(); });
  entered.acquire();
  CHECK(codes == std::vector{Code::kCancelled, Code::kFailedPrecondition,
                             Code::kFailedPrecondition});
  blockade.let_go();
  CHECK(first.get().status().code() == Code::kCancelled);
  const Status status = session->close(std::chrono::milliseconds(5));
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kDeadlineExceeded);
  go_on.release();
  CHECK(session->close().ok());
  CHECK(returned);
  cancels.join();
}

TEST_CASE("smoke: `done` may let go of the session, and of its engine") {
  const Graph graph = counting_loop();
  for (const SessionOptions& options : hand_offs_by_workers()) {
    INFO(describe(options));
    std::shared_ptr<Session> session = make_session(options, graph);
    std::weak_ptr<Session> left = session;
    std::binary_semaphore done{0};
    Session* const raw = session.get();
    raw->run_async({{"n", Tensor::scalar(5)}}, {"y"}, {}, {},
                   [&done, session](Answer answer, RunStats) mutable {
                     CHECK(answer.ok());
                     session.reset();
                     done.release();
                   });
    session.reset();
    done.acquire();
    while (!left.expired()) std::this_thread::yield();
  }
}

TEST_CASE("smoke: a kernel on its caller's thread may let go of the session") {
  // If others take the thread over it is an engine's, whichever it is.
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), test_call(s, s.constant(Tensor::scalar(2))));
  REQUIRE(s.status().ok());
  for (const bool drop : {false, true}) {
    CAPTURE(drop);
    auto session = make_session({}, graph);
    Session* const raw = session.get();
    const TestCall call([&] {
      if (drop) {
        session.reset();
        return;
      }
      CHECK(raw->close().code() == Code::kFailedPrecondition);
      CHECK(raw->run({}, {"y"}).status().code() == Code::kFailedPrecondition);
    });
    CHECK(raw->run({}, {"y"}).status().code() == Code::kCancelled);
  }
}

TEST_CASE("smoke: an exception of `done` is a warning, the session goes on") {
  const Graph graph = counting_loop();
  for (SessionOptions options : hand_offs_by_workers()) {
    INFO(describe(options));
    std::promise<std::string> told;
    options.on_warning = [&](const std::string& text) { told.set_value(text); };
    auto session = make_session(options, graph);
    session->run_async({{"n", Tensor::scalar(5)}}, {"y"}, {}, {},
                       [](Answer, RunStats) { throw 3; });
    const std::string text = told.get_future().get();
    CAPTURE(text);
    CHECK(text.find("`done`") != text.npos);
    must_run(*session, {{"n", Tensor::scalar(5)}}, {"y"});
  }
}

TEST_CASE("smoke: an exception of on_warning is dropped") {
  SessionOptions options;
  options.on_warning = [](const std::string&) { throw 4; };
  auto session = make_session(options, counting_loop());
  int calls = 0;
  const Done throws = [&](Answer answer, RunStats) {
    CHECK_FALSE(answer.ok());
    ++calls;
    throw 3;
  };
  session->run_async({}, {"none"}, {}, {}, throws);
  Callable().run_async({}, {}, throws);
  CHECK(calls == 2);
}

TEST_CASE("a thousand sessions share threads and devices") {
  const size_t cores = std::thread::hardware_concurrency();
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), s.constant(Tensor::scalar(2)));
  for (const char* devices : {"", "cpu:2,stream:1"}) {
    CAPTURE(devices);
    // Other cases may have left engines that live on.
    const size_t before = num_threads();
    std::vector<std::unique_ptr<Session>> sessions;
    sessions.push_back(make_session({.devices = devices}, graph));
    must_run(*sessions[0], {}, {"y"});
    // The workers, the threads of the engine, and those of the stream.
    const size_t most = before + cores + 3 + 4;
    const size_t threads = num_threads();
    CHECK(threads <= most);
    for (int i = 1; i < 1000; ++i) {
      sessions.push_back(make_session({.devices = devices}, graph));
      must_run(*sessions.back(), {}, {"y"});
    }
    CHECK(num_threads() <= threads);
    CHECK(sessions[0]->devices()[0].get() == sessions[999]->devices()[0].get());
  }
}

TEST_CASE("a session keeps a few sets of actors, however many runs it had") {
  constexpr int kRuns = Executable::kMostIdle + 8;
  const Graph graph = blocked_graph();
  const auto engine = graph::testing::must(Engine::create({.workers = 1}));
  const auto session = std::make_shared<SessionState>(
      SessionOptions(), graph::testing::must(engine->devices("")));
  graph::testing::must(session->extend(graph));
  const std::shared_ptr<const Prepared> prepared =
      graph::testing::must(session->prepare({{}, {"y"}, {}}));
  for (int round = 0; round < 2; ++round) {
    Blockade blockade;
    std::vector<std::promise<Answer>> answers(kRuns);
    for (auto& promise : answers)
      session->run_async(prepared, {}, {}, [&](Answer answer, RunStats) {
        promise.set_value(std::move(answer));
      });
    CHECK(prepared->executable->num_idle() == 0);
    blockade.let_go();
    for (auto& promise : answers) CHECK(promise.get_future().get().ok());
    CHECK(prepared->executable->num_idle() == Executable::kMostIdle);
  }
  CHECK(session->close({}).ok());
}

TEST_CASE("smoke: a session takes an engine that was made apart") {
  const auto engine = graph::testing::must(Engine::create({.workers = 3}));
  const Graph graph = counting_loop();
  for (int i = 0; i < 3; ++i) {
    auto session = make_session({.engine = engine}, graph);
    must_run(*session, {{"n", Tensor::scalar(5)}}, {"y"});
  }
  // What belongs to the engine is not the session's to choose.
  SessionOptions other{.engine = engine, .workers = 2};
  CHECK(Session::create(other).status().code() == Code::kInvalidArgument);
  other = {.engine = engine, .pin_workers = true};
  CHECK(Session::create(other).status().code() == Code::kInvalidArgument);
  other = {.engine = engine, .hand_off = HandOff::kMailbox};
  CHECK(Session::create(other).status().code() == Code::kInvalidArgument);
  const auto mail = graph::testing::must(
      Engine::create({.workers = 1, .hand_off = HandOff::kMailbox}));
  CHECK(make_session({.engine = mail}, graph)->options().hand_off ==
        HandOff::kMailbox);
}

#if !defined(TAGFLOW_SANITIZES_THREAD)
TEST_CASE("a fork's child can make a session of its own") {
  const Graph graph = counting_loop();
  auto session = make_session({}, graph);
  must_run(*session, {{"n", Tensor::scalar(5)}}, {"y"});
  CHECK(in_child([&] {
          const auto answer = session->run({{"n", Tensor::scalar(5)}}, {"y"});
          return answer.status().code() == Code::kFailedPrecondition ? 0 : 1;
        }) == 0);
  CHECK(in_child([&] {
          session.reset();
          auto fresh = Session::create({});
          if (!fresh.ok() || !(*fresh)->extend(graph).ok()) return 1;
          const auto answer =
              (*fresh)->run({{"n", Tensor::scalar(100'000)}}, {"y"});
          return answer.ok() ? 0 : 2;
        }) == 0);
  must_run(*session, {{"n", Tensor::scalar(5)}}, {"y"});
}
#endif
