// Many runs at once, asynchronous runs, kernels on lanes, windows.
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "devices/kernel.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// Is worth a lane of its own.
class ExpensiveKernel : public devices::Kernel {
 public:
  double cost(const devices::KernelContext&) const override { return 1e6; }
};

// Counts how many of them run at once.
std::atomic<int> running{0};
std::atomic<int> most_running{0};

class CountingKernel : public ExpensiveKernel {
 public:
  explicit CountingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    const int now = running.fetch_add(1) + 1;
    int most = most_running.load();
    while (most < now && !most_running.compare_exchange_weak(most, now)) {
    }
    // Long enough for another worker to be woken; no result depends on it.
    volatile uint64_t spin = 0;
    for (int i = 0; i < 300'000; ++i) spin = spin + 1;
    running.fetch_sub(1);
    context.set_output(0, context.input(0));
    return {};
  }
};

class FailingKernel : public devices::CheapKernel {
 public:
  explicit FailingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override {
    return error(Code::kOutOfRange, "[TestFail] as asked");
  }
};

// Throws.
class ThrowingKernel : public ExpensiveKernel {
 public:
  explicit ThrowingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override {
    throw std::runtime_error("as thrown");
  }
};

// Throws before it has promised an answer.
class ThrowingAsyncKernel : public devices::AsyncKernel {
 public:
  explicit ThrowingAsyncKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext&,
                     devices::Completion) const override {
    throw std::runtime_error("as thrown");
  }
};

// Blocks until it is let go, whatever becomes of its step.
std::atomic<bool> holding{false};
std::atomic<bool> held{false};  // it blocks now

class HoldingKernel : public ExpensiveKernel {
 public:
  explicit HoldingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    held.store(true);
    held.notify_all();
    holding.wait(true);
    held.store(false);
    context.set_output(0, context.input(0));
    return {};
  }
};

// Fails while TestHold blocks.
class FailingLateKernel : public devices::AsyncKernel {
 public:
  explicit FailingLateKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext&,
                     devices::Completion done) const override {
    std::thread([done = std::move(done)] {
      held.wait(false);
      done(error(Code::kOutOfRange, "[TestFailLate] as asked"));
    }).detach();
  }
};

// Answers later, from another thread.
class LaterKernel : public devices::AsyncKernel {
 public:
  explicit LaterKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    std::thread([&context, done = std::move(done)] {
      context.set_output(0, context.input(0));
      done({});
    }).detach();
  }
};

void register_test_ops() {
  static const bool once = [] {
    add_test_op<CountingKernel>("TestCount");
    add_test_op<FailingKernel>("TestFail");
    add_test_op<ThrowingKernel>("TestThrow");
    add_test_op<ThrowingAsyncKernel>("TestThrowAsync");
    add_test_op<HoldingKernel>("TestHold");
    add_test_op<FailingLateKernel>("TestFailLate");
    add_test_op<LaterKernel>("TestLater");
    return true;
  }();
  (void)once;
}

// sum = i + ... while i < n, with `op` applied to i in each iteration.
Outputs loop_with(const Scope& s, const char* op, const Input& n) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output y = in.op(op, {v[0]});
        return {ops::add(in, v[0], 1), ops::add(in, v[1], y)};
      },
      {0, 0});
}

}  // namespace

TEST_CASE("smoke: runs of one session at once do not disturb each other") {
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = loop_with(s, "Identity", n);
  REQUIRE(s.status().ok());
  for (const HandOff policy : kHandOffs) {
    SessionOptions options;
    options.hand_off = policy;
    options.workers = 2;
    auto session = make_session(options, graph);
    auto callable = session->make_callable({"n"}, {r[1].name()});
    REQUIRE(callable.ok());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const int trips = t * 50 + i;
          const Tensor feed = Tensor::scalar(trips);
          auto out = (*callable)({&feed, 1});
          if (!out.ok() ||
              (*out)[0].scalar_value<int32_t>() != trips * (trips - 1) / 2)
            ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("smoke: asynchronous runs answer each exactly once") {
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = loop_with(s, "Identity", n);
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.workers = 2;
  auto session = make_session(options, graph);
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0;
  int right = 0;
  constexpr int kRuns = 40;
  for (int i = 0; i < kRuns; ++i)
    session->run_async(
        {{"n", Tensor::scalar(i)}}, {r[0].name()}, {}, {},
        [&, i](auto result, RunStats) {
          std::lock_guard lock(mutex);
          ++answered;
          if (result.ok() && (*result)[0].template scalar_value<int>() == i)
            ++right;
          changed.notify_all();
        });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answered == kRuns; });
  CHECK(right == kRuns);
}

TEST_CASE("smoke: the time-out of an asynchronous endless run holds") {
  Graph graph;
  Scope s(graph);
  const Outputs r = loop_with(
      s, "Identity", ops::placeholder(s.named("n"), DataType::kInt32, {}));
  const Outputs endless = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::equal(in, v[0], v[0]);
      },
      [](const Scope&, const Outputs& v) -> Outputs { return {v[0]}; }, {0});
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.workers = 1;
  auto session = make_session(options, graph);
  RunOptions run;
  run.timeout = std::chrono::milliseconds(10);
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Code> code;
  session->run_async({}, {endless[0].name()}, {}, run,
                     [&](auto result, RunStats) {
                       std::lock_guard lock(mutex);
                       code = result.status().code();
                       changed.notify_all();
                     });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return code.has_value(); });
  CHECK(*code == Code::kDeadlineExceeded);
}

TEST_CASE("smoke: no more iterations are in flight than the window allows") {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = loop_with(s, "TestCount", n);
  REQUIRE(s.status().ok());
  for (int window : {1, 2, 4}) {
    SessionOptions options;
    options.workers = 2;
    options.window = window;
    auto session = make_session(options, graph);
    most_running = 0;
    RunStats stats;
    auto out = session->run({{"n", Tensor::scalar(20)}}, {r[1].name()}, {}, {},
                            &stats);
    REQUIRE(out.ok());
    CHECK((*out)[0].scalar_value<int32_t>() == 190);
    CHECK(stats.max_in_flight <= window);
    CHECK(most_running <= std::min(window, 3));
  }
}

TEST_CASE("smoke: expensive kernels of one iteration run on several lanes") {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  std::vector<std::string> fetches;
  for (int i = 0; i < 6; ++i)
    fetches.push_back(Output(s.op("TestCount", {i})).name());
  REQUIRE(s.status().ok());
  for (HandOff policy : {HandOff::kDirect, HandOff::kMailbox}) {
    SessionOptions options;
    options.workers = 2;
    options.hand_off = policy;
    auto session = make_session(options, graph);
    RunStats stats;
    auto out = session->run({}, fetches, {}, {}, &stats);
    REQUIRE(out.ok());
    for (int i = 0; i < 6; ++i)
      CHECK((*out)[size_t(i)].scalar_value<int32_t>() == i);
    CHECK(stats.offloaded >= 5);
  }
}

TEST_CASE("smoke: an asynchronous kernel continues its iteration later") {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = loop_with(s, "TestLater", n);
  REQUIRE(s.status().ok());
  for (const HandOff policy : kHandOffs) {
    SessionOptions options;
    options.workers = 2;
    options.hand_off = policy;
    auto session = make_session(options, graph);
    auto out = session->run({{"n", Tensor::scalar(30)}}, {r[1].name()});
    INFO(out.status().to_string());
    REQUIRE(out.ok());
    CHECK((*out)[0].scalar_value<int32_t>() == 435);
  }
}

TEST_CASE("smoke: a kernel's error names node, frame and iteration, once") {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  const Outputs r = loop_with(s, "TestFail", 10);
  REQUIRE(s.status().ok());
  for (const HandOff policy : kHandOffs) {
    SessionOptions options;
    options.hand_off = policy;
    options.workers = 2;
    auto session = make_session(options, graph);
    for (int i = 0; i < 3; ++i) {
      auto out = session->run({}, {r[1].name()});
      REQUIRE(!out.ok());
      CHECK(out.status().code() == Code::kOutOfRange);
      const std::string text(out.status().message());
      INFO(text);
      CHECK(text.find("[TestFail] as asked") == 0);
      CHECK(text.find("node \"while/TestFail\"") != std::string::npos);
      CHECK(text.find("iteration \"while/while_context/0\"") !=
            std::string::npos);
    }
  }
}

// The error of a run that a kernel holds up beyond its time-out, `asynchronous`
// or not, with `first` beside the kernel. Lets the kernel go afterwards.
Status held_up(bool asynchronous, const char* first,
               std::chrono::milliseconds timeout) {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  const Output slow = Output(s.op("TestHold", {1}));
  const Output other = Output(s.op(first, {1}));
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.workers = 2;
  auto session = make_session(options, graph);
  (void)testing::must(session->make_callable({}, {slow.name(), other.name()}));
  RunOptions run;
  run.timeout = timeout;
  holding.store(true);
  Status status;
  int answers = 0;
  if (asynchronous) {
    std::mutex mutex;
    std::condition_variable changed;
    session->run_async({}, {slow.name(), other.name()}, {}, run,
                       [&](auto result, RunStats) {
                         std::lock_guard lock(mutex);
                         status = result.status();
                         ++answers;
                         changed.notify_all();
                       });
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return answers > 0; });
    }
    holding.store(false);
    holding.notify_all();
    session.reset();  // waits for the kernel, after which nobody answers
  } else {
    status = session->run({}, {slow.name(), other.name()}, {}, run).status();
    answers = 1;
    holding.store(false);
    holding.notify_all();
  }
  CHECK(answers == 1);
  return status;
}

TEST_CASE("a kernel that cannot be interrupted does not hold up the answer") {
  for (const bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    const Status late =
        held_up(asynchronous, "Identity", std::chrono::milliseconds(30));
    CAPTURE(late.to_string());
    CHECK(late.code() == Code::kDeadlineExceeded);
    CHECK(late.message().find("time-out of 0.03 s") != std::string::npos);
    CHECK(late.message().find("the run was still ending: TestHold \"TestHold\" "
                              "has run on /device:CPU:0 for ") !=
          std::string::npos);
  }
  // The first error wins, though it waits for the same kernel. (Without a lent
  // thread the kernel runs in the iteration's actor, which hears of no error.)
  Status failed;
  // On a busy machine the time-out may come before the error.
  for (std::chrono::milliseconds timeout(100); timeout.count() < 100'000;
       timeout *= 4) {
    failed = held_up(false, "TestFailLate", timeout);
    if (failed.code() != Code::kDeadlineExceeded) break;
  }
  CAPTURE(failed.to_string());
  CHECK(failed.code() == Code::kOutOfRange);
  CHECK(failed.message().find("[TestFailLate] as asked") == 0);
  CHECK(failed.message().find("the run was still ending") != std::string::npos);
}

TEST_CASE("an exception of a kernel is an error of its node, on any lane") {
  register_test_ops();
  Graph graph;
  Scope s(graph);
  std::vector<std::string> fetches;
  for (int i = 0; i < 3; ++i)
    fetches.push_back(Output(s.op("TestThrow", {i})).name());
  const std::string late = Output(s.op("TestThrowAsync", {0})).name();
  REQUIRE(s.status().ok());
  for (const HandOff policy : kHandOffs) {
    for (size_t count : {1, 3}) {
      SessionOptions options;
      options.hand_off = policy;
      options.workers = 2;
      auto session = make_session(options, graph);
      const auto out = session->run(
          {}, std::vector(fetches.begin(), fetches.begin() + count));
      CHECK(out.status().code() == Code::kInternal);
      const std::string text(out.status().message());
      CAPTURE(text);
      CHECK(text.find("[TestThrow] unexpected exception: as thrown (node "
                      "\"TestThrow") == 0);
      const auto async = session->run({}, {late});
      CHECK(async.status().message().find(
                "[TestThrowAsync] unexpected exception: as thrown (node "
                "\"TestThrowAsync") == 0);
    }
  }
}

TEST_CASE("smoke: wrong signatures and feeds are refused by name") {
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("count"), DataType::kInt32, {2});
  ops::neg(s.named("negative"), n);
  const Outputs r = loop_with(s, "Identity", 3);
  REQUIRE(s.status().ok());
  auto session = make_session({}, graph);
  const auto says = [&](const std::vector<Feed>& feeds,
                        const std::vector<std::string>& fetches,
                        const std::string& part) {
    auto out = session->run(feeds, fetches);
    REQUIRE(!out.ok());
    const std::string text = out.status().to_string();
    INFO(text, " should say ", part);
    CHECK(text.find(part) != std::string::npos);
  };
  const Tensor two = Tensor::vector<int32_t>({1, 2});
  says({}, {"negativ:0"}, "negative");
  says({}, {"negative:7"}, "negative");
  says({{"counts", two}}, {"negative"}, "count");
  says({{"count", Tensor::scalar(1.f)}}, {"negative"}, "int32");
  says({{"count", Tensor::vector<int32_t>({1, 2, 3})}}, {"negative"}, "[2]");
  says({{"count", two}, {"count:0", two}}, {"negative"}, "fed twice");
  says({}, {"negative"}, "count");
  says({}, {"while/Merge"}, "inside the loop");
  says({}, {Output().name()}, "Scope has an error");
  CHECK(session->run({{"count", two}}, {"negative"}).ok());
}
