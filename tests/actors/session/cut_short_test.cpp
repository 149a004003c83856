// Steps that end early: which nodes do not run any more, and which error is
// returned.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "actors/shared_state.h"
#include "actors/watch/observer.h"
#include "devices/kernel.h"
#include "devices/state/guarded_state.h"
#include "graph/builder/builder.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

using Clock = std::chrono::steady_clock;

// Counts its executions, each of which lasts as long as this says.
std::atomic<int> counted{0};
std::chrono::microseconds each_lasts{0};

class CountKernel : public devices::Kernel {
 public:
  explicit CountKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    ++counted;
    const auto end = Clock::now() + each_lasts;
    while (Clock::now() < end) {
    }
    context.set_output(0, context.input(0));
    return {};
  }
};

class HeavyKernel : public devices::Kernel {
 public:
  double cost(const devices::KernelContext&) const override { return 1e6; }
};

class HeavyCountKernel : public HeavyKernel {
 public:
  explicit HeavyCountKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    ++counted;
    context.set_output(0, context.input(0));
    return {};
  }
};

// Fails if it gets 0.
class PickyKernel : public devices::AsyncKernel {
 public:
  explicit PickyKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    if (context.input(0).scalar_value<int32_t>() == 0)
      return done(error(Code::kOutOfRange, "[TestPicky] as asked"));
    context.set_output(0, context.input(0));
    done({});
  }
};

// Blocks until it is let go.
std::atomic<bool> let_go{false};
std::atomic<int> begun{0};

class BlockKernel : public HeavyKernel {
 public:
  explicit BlockKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    ++begun;
    begun.notify_all();
    let_go.wait(false);
    context.set_output(0, context.input(0));
    return {};
  }
};

constexpr std::chrono::milliseconds kTimeout{30};

// Spins until the step's time is up, which began before.
class SpinKernel : public devices::Kernel {
 public:
  explicit SpinKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    const auto late = Clock::now() + kTimeout;
    while (Clock::now() <= late) std::this_thread::yield();
    context.set_output(0, context.input(0));
    return {};
  }
};

// Lasts from before the step's error until after its time is up.
std::atomic<bool> lasting{false};

class LastKernel : public HeavyKernel {
 public:
  explicit LastKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    const auto late = Clock::now() + kTimeout;
    lasting = true;
    lasting.notify_all();
    while (!context.cancelled() || Clock::now() <= late)
      std::this_thread::yield();
    context.set_output(0, context.input(0));
    return {};
  }
};

// Fails while TestLast runs.
class FailKernel : public devices::AsyncKernel {
 public:
  explicit FailKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext&,
                     devices::Completion done) const override {
    std::thread([done = std::move(done)] {
      lasting.wait(false);
      done(error(Code::kOutOfRange, "[TestFailFirst] as asked"));
    }).detach();
  }
};

struct Looping : Observer {
  void on_iteration_start(const Location& location) override {
    if (location.frame.empty() || has_begun.exchange(true)) return;
    has_begun.notify_all();
  }
  std::atomic<bool> has_begun{false};
};

void register_ops() {
  static const bool once = [] {
    add_test_op<CountKernel>("TestCountRuns");
    add_test_op<HeavyCountKernel>("TestCountHeavy");
    add_test_op<PickyKernel>("TestPicky");
    add_test_op<BlockKernel>("TestStandStill");
    add_test_op<SpinKernel>("TestSpin");
    add_test_op<LastKernel>("TestLast");
    add_test_op<FailKernel>("TestFailFirst");
    return true;
  }();
  CHECK(once);
}

}  // namespace

TEST_CASE("kernels that wait for a lane do not run after a cancellation") {
  register_ops();
  Graph graph;
  Scope s(graph);
  std::vector<std::string> fetches;
  for (int i = 0; i < 12; ++i)
    fetches.push_back(Output(s.op("TestStandStill", {i})).name());
  REQUIRE(s.ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    let_go = false;
    begun = 0;
    RunOptions run;
    run.cancel.emplace();
    std::thread canceller([token = *run.cancel]() mutable {
      begun.wait(0);
      token.cancel();
    });
    const auto out = session->run({}, fetches, {}, run);
    canceller.join();
    CHECK(out.status().code() == Code::kCancelled);
    let_go = true;
    let_go.notify_all();
    session.reset();  // waits for what runs
    CHECK(begun >= 1);
    // Those that had a worker, or the thread that was lent, by then.
    CHECK(begun <= options.workers + 1);
  }
}

TEST_CASE("a time-out ends one long iteration in which nothing is posted") {
  register_ops();
  constexpr int kNodes = 5'000;
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32);
  Output last = s.op("TestSpin", {x});
  for (int i = 0; i < kNodes; ++i) last = s.op("TestCountRuns", {last});
  REQUIRE(s.ok());
  // All of them would last a second, so that whoever looks at the clock does so
  // before, on a busy machine, too.
  each_lasts = std::chrono::microseconds(200);
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    counted = 0;
    RunOptions run;
    run.timeout = kTimeout;
    const auto out =
        session->run({{"x", Tensor::scalar(1)}}, {last.name()}, {}, run);
    CHECK(out.status().code() == Code::kDeadlineExceeded);
    session.reset();
    CHECK(counted < kNodes);
  }
  each_lasts = {};
}

TEST_CASE("a cancelled run says how far it had come, as a late one does") {
  Graph graph;
  const Scope s(graph);
  const Outputs r = while_loop(
      s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 1); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::mul(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    Looping looping;
    RunOptions observed;
    observed.observer = &looping;
    Pending run(*session, r[0].name(), observed);
    looping.has_begun.wait(false);
    run.token.cancel();
    const Status status = run.get().status();
    CAPTURE(status.to_string());
    session.reset();
    CHECK(status.code() == Code::kCancelled);
    // Under load it may not be at rest within the grace.
    CHECK((status.message().find("frame \"loop/") != std::string::npos ||
           status.message().find("ms later") != std::string::npos));
  }
}

TEST_CASE("an error stays the step's error when its time is up, too") {
  register_ops();
  Graph graph;
  Scope s(graph);
  const Outputs r = while_loop(
      s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 9); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, in.op("TestLast", {v[0]}), 1)};
      },
      {0});
  const Output bad = s.named("bad").op("TestFailFirst", {0});
  REQUIRE(s.ok());
  for (const HandOff hand_off : kHandOffs) {
    SessionOptions options;
    options.hand_off = hand_off;
    options.workers = 2;
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    RunOptions run;
    run.timeout = kTimeout;
    Status status;
    // A machine under load may not start the kernels in time, or not come to
    // rest within the grace.
    for (int i = 0; i < 100; ++i) {
      lasting = false;
      status = session->run({}, {r[0].name(), bad.name()}, {}, run).status();
      // Lets the kernel that waits go, if the other one never began.
      lasting = true;
      lasting.notify_all();
      if (status.code() == Code::kOutOfRange &&
          status.message().find("ms later") == std::string::npos)
        break;
    }
    CHECK(status.code() == Code::kOutOfRange);
    // No more than the error says: not how far the loop had come.
    CHECK(status.message() ==
          "[TestFailFirst] as asked (node \"bad\", device /device:CPU:0)");
  }
}

TEST_CASE("a failed step's kernels do not run in the next step") {
  register_ops();
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  std::vector<std::string> fetches;
  for (int i = 0; i < 3; ++i)
    fetches.push_back(Output(s.op("TestCountHeavy", {x})).name());
  fetches.push_back(Output(ops::floor_div(s, 12, x)).name());
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (int i = 0; i < 2; ++i) {
      const auto bad = session->run({{"x", Tensor::scalar(0)}}, fetches, {},
                                    within_a_minute());
      CHECK(bad.status().code() == Code::kInvalidArgument);
      counted = 0;
      const auto out = must_run(*session, {{"x", Tensor::scalar(4)}}, fetches);
      CHECK(out[2].scalar_value<int32_t>() == 4);
      CHECK(out[3].scalar_value<int32_t>() == 3);
      CHECK(counted == 3);
    }
  }
}

TEST_CASE("a failed step's launches are not sent to an accelerator later") {
  Graph graph;
  const Scope s(graph);
  const Scope far = s.with_device("/stream:0");
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  const Output b = ops::placeholder(s.named("b"), DataType::kBool);
  std::vector<std::string> fetches;
  for (int i = 0; i < 3; ++i) fetches.push_back(ops::neg(far, x).name());
  // Fails if "b" is not a scalar.
  const OpResult sw = far.named("sw").op("Switch", {x, b});
  fetches.push_back(ops::abs(far, sw[1]).name());
  REQUIRE(s.ok());
  const std::vector<float> values(100, 2.f);
  const Tensor fed = Tensor::of<float>({100}, std::span<const float>(values));
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1";
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (int i = 0; i < 2; ++i) {
      const auto bad =
          session->run({{"x", fed}, {"b", Tensor::vector<bool>({true})}},
                       fetches, {}, within_a_minute());
      CHECK(bad.status().message().find("[Switch] the predicate must be") == 0);
      const auto out = must_run(
          *session, {{"x", fed}, {"b", Tensor::scalar(true)}}, fetches);
      CHECK(out[2].flat<float>()[99] == -2);
      CHECK(out[3].flat<float>()[99] == 2);
    }
    session.reset();
    CHECK(fed.unique());
  }
}

TEST_CASE("kernels of a failed step leave an accelerator to the next step") {
  // More of them than may take memory at a time; the step fails meanwhile.
  constexpr int64_t kSize = 200;
  Graph graph;
  const Scope s(graph);
  const Scope far = s.with_device("/stream:0");
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, {kSize, kSize});
  const Output b = ops::placeholder(s.named("b"), DataType::kBool);
  std::vector<std::string> fetches;
  for (int i = 0; i < 8; ++i) fetches.push_back(ops::matmul(far, x, x).name());
  // Fails if "b" is not a scalar, when they are on their way.
  const Output late =
      ops::identity(s.with_control_dependencies({test_take(s)}), b);
  const OpResult sw = s.named("sw").op("Switch", {x, late});
  fetches.push_back(ops::abs(s, sw[1]).name());
  REQUIRE(s.ok());
  TestQueue& queue = TestQueue::global();
  const Tensor ones = Tensor::of<float>(
      {kSize, kSize}, std::vector<float>(size_t(kSize * kSize), 1.f));
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1:memory=1GiB";
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (int i = 0; i < 3; ++i) {
      queue.clear();
      Pending run(*session, {{"x", ones}, {"b", Tensor::vector<bool>({true})}},
                  fetches, within_a_minute());
      CHECK(comes_true([&] { return queue.waiting() == 1; }));
      queue.put(1);
      const auto bad = run.get();
      CHECK(bad.status().message().find("[Switch] the predicate must be") == 0);
      queue.put(1);
      const auto out = must_run(
          *session, {{"x", ones}, {"b", Tensor::scalar(true)}}, fetches);
      CHECK(out[7].flat<float>()[0] == float(kSize));
    }
  }
}

TEST_CASE("tokens of a failed step for a later iteration are not the next's") {
  // Iterations 0 and 1 wait, and fill the window: the tokens for iteration 2
  // wait, too.
  Graph graph;
  const Scope s(graph);
  const Outputs r = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::add(in, v[1], test_take(in))};
      },
      {0, 0}, {.parallel_iterations = 2});
  REQUIRE(s.ok());
  TestQueue& queue = TestQueue::global();
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (int i = 0; i < 3; ++i) {
      queue.clear();
      Pending run(*session, r[1].name(), within_a_minute());
      CHECK(comes_true([&] { return queue.waiting() == 2; }));
      run.token.cancel();
      CHECK(run.get().status().code() == Code::kCancelled);
      for (const int value : {1, 2, 4}) queue.put(value);
      RunStats stats;
      const auto out = must_run(*session, {}, {r[1].name()}, &stats);
      CHECK(out[0].scalar_value<int32_t>() == 7);
      CHECK(stats.stale == 0);
    }
  }
}

TEST_CASE("a cancelled step gives back locks before its last kernel ends") {
  using Mode = devices::StateLock::Mode;
  Graph graph;
  const Scope s(graph);
  test_block(s.named("y").with_device("/cpu:1"), 2);
  const Tensor ones = Tensor::of<float>({32}, std::vector<float>(32, 1.f));
  std::vector<ops::Variable> variables;
  for (const std::string name : {"a", "b"}) {
    variables.push_back(ops::variable(s.named(name), DataType::kFloat, {32}));
    ops::assign(s.named("init_" + name), variables.back(), ones);
  }
  // Takes the locks of both.
  const Output both(
      s.op("ResourceApplyMomentum",
           {variables[0].handle, variables[1].handle, 1.f, ones, 0.f}));
  ops::identity(s.with_control_dependencies({both}).named("after"), 1);
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  for (const HandOff hand_off : kHandOffs) {
    SessionOptions options;
    options.hand_off = hand_off;
    options.workers = 2;
    options.devices = "cpu:2";
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    REQUIRE(session->run({}, {}, {"init_a", "init_b"}, within_a_minute()).ok());
    std::vector<devices::StateLock*> locks;
    session->shared_state()->resources().for_each(
        [&](const devices::ResourceKey&, devices::StateObject& object) {
          if (auto* state = dynamic_cast<devices::GuardedState*>(&object))
            locks.push_back(&state->lock());
        });
    REQUIRE(locks.size() == 2);
    // In which they are taken.
    std::ranges::sort(locks, std::less<>());
    const auto is_free = [&](size_t i) {
      if (!locks[i]->try_lock(Mode::kExclusive)) return false;
      locks[i]->unlock(Mode::kExclusive);
      return true;
    };
    REQUIRE(locks[1]->try_lock(Mode::kExclusive));
    Blockade blockade;
    Pending run(*session, {}, {"y", "after"}, within_a_minute());
    blockade.until_begun(1);
    CHECK(comes_true([&] { return !is_free(0); }));
    run.token.cancel();
    CHECK(comes_true([&] { return is_free(0); }));
    blockade.let_go();
    CHECK(run.get().status().code() == Code::kCancelled);
    locks[1]->unlock(Mode::kExclusive);
    CHECK(is_free(1));
    CHECK(must_run(*session, {}, {"after"})[0].scalar_value<int32_t>() == 1);
  }
}

TEST_CASE("an asynchronous kernel that failed once answers the next step") {
  register_ops();
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  const Output y = s.op("TestPicky", {x});
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    for (const int value : {0, 3, 0, 5}) {
      const auto out = session->run({{"x", Tensor::scalar(value)}}, {y.name()},
                                    {}, within_a_minute());
      CHECK(out.status().code() ==
            (value == 0 ? Code::kOutOfRange : Code::kOk));
      if (out.ok()) CHECK((*out)[0].scalar_value<int32_t>() == value);
    }
  }
}

TEST_CASE("a caller is not kept by a kernel, though there is one worker") {
  const Graph graph = blocked_graph();
  for (const HandOff hand_off : kHandOffs) {
    SessionOptions options;
    options.hand_off = hand_off;
    options.workers = 1;
    INFO(describe(options));
    auto session = make_session(options, graph);
    Blockade blockade;
    RunOptions run;
    run.timeout = kTimeout;
    CHECK(session->run({}, {"y"}, {}, run).status().code() ==
          Code::kDeadlineExceeded);
  }
}
