// Each allocation of a run fails once: the run ends with an error or with its
// result, and the session remains usable.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include "tests/actors/holding_op.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"
#include "tests/failing_new.h"
#include "tests/repeats.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

#if !defined(TAGFLOW_SANITIZES_THREAD) && !defined(TAGFLOW_SANITIZES_ADDRESS)
namespace {

// The k-th thread that is started from now on cannot be had; 0: all can.
std::atomic<int> thread_to_fail{0};

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr,
                              void* (*body)(void*), void* argument) {
  if (thread_to_fail != 0 && thread_to_fail.fetch_sub(1) == 1) return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attr, body, argument);
}
#endif

namespace {

using Answer = Result<std::vector<Tensor>>;

struct Case {
  const char* name;
  std::function<Output(const Scope&)> build;
  const char* devices = "";
};

Output counting_loop(const Scope& s, const Input& limit, int window) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], v[0])};
      },
      {0, 1}, {.parallel_iterations = window})[1];
}

std::vector<Case> cases() {
  return {
      {"a chain",
       [](const Scope& s) { return ops::add(s, ops::add(s, 1, 2), 3); }},
      {"a loop", [](const Scope& s) { return counting_loop(s, 5, 1); }},
      {"a loop with a window",
       [](const Scope& s) { return counting_loop(s, 5, 8); }},
      {"a loop in a loop",
       [](const Scope& s) {
         return while_loop(
             s,
             [](const Scope& in, const Outputs& v) {
               return ops::less(in, v[0], 3);
             },
             [](const Scope& in, const Outputs& v) -> Outputs {
               return {ops::add(in, v[0], 1),
                       ops::add(in, v[1], counting_loop(in, v[0], 4))};
             },
             {0, 0})[1];
       }},
      {"a conditional",
       [](const Scope& s) {
         return cond(
             s, ops::less(s, 1, 2),
             [](const Scope& in) -> Outputs { return ops::add(in, 1, 2); },
             [](const Scope& in) -> Outputs { return ops::add(in, 3, 4); })[0];
       }},
      {"a wait",
       [](const Scope& s) {
         const Output put = test_put(s, 5);
         return ops::add(s, test_take(s), put);
       }},
      {"two devices",
       [](const Scope& s) {
         const Output a = ops::add(s.with_device("/device:CPU:1"), 1, 2);
         return ops::add(s.with_device("/device:CPU:0"), a, 3);
       },
       "cpu:2"},
      {"many tensors between two devices",
       [](const Scope& s) {
         const Scope other = s.with_device("/device:CPU:1");
         const Output start = test_put(other, 5);
         Inputs all;
         for (int i = 0; i < 6; ++i) all.add(ops::add(other, start, i));
         return ops::add_n(s.with_device("/device:CPU:0"), all);
       },
       "cpu:2"},
      {"a loop over two devices",
       [](const Scope& s) {
         return while_loop(
             s,
             [](const Scope& in, const Outputs& v) {
               return ops::less(in, v[0], 4);
             },
             [](const Scope& in, const Outputs& v) -> Outputs {
               return {ops::add(in, v[0], 1),
                       ops::add(in.with_device("/device:CPU:1"), v[1], v[0])};
             },
             {0, 0})[1];
       },
       "cpu:2"},
      {"products on lanes",
       [](const Scope& s) {
         const std::vector<float> values(128 * 128, 1.f);
         const Tensor ones =
             Tensor::of<float>({128, 128}, std::span<const float>(values));
         Inputs all;
         for (int i = 0; i < 3; ++i)
           all.add(ops::matmul(s, s.constant(ones), s.constant(ones)));
         return ops::add_n(s, all);
       }},
      {"an accelerator",
       [](const Scope& s) {
         const Tensor x = Tensor::of<float>({64}, std::vector<float>(64, 2.f));
         const Scope on = s.with_device("/device:STREAM:0");
         return ops::add(on, ops::mul(on, on.constant(x), on.constant(x)),
                         on.constant(x));
       },
       "cpu:1,stream:1"},
  };
}

// A call, whose arguments are made before memory is short: these are the
// test's.
class Call {
 public:
  Call(Session& session, bool async) : session_(session), async_(async) {}

  Answer operator()() {
    if (!async_) return session_.run({}, fetches_, {}, options_);
    session_.run_async({}, fetches_, {}, options_, std::move(done_));
    return answer_.get();
  }

 private:
  Session& session_;
  const bool async_;
  const std::vector<std::string> fetches_{"y"};
  const RunOptions options_ = within_a_minute();
  std::promise<Answer> promise_;
  std::future<Answer> answer_ = promise_.get_future();
  Done done_ = [this](Answer given, RunStats) {
    promise_.set_value(std::move(given));
  };
};

// Fails `count` allocations from the k-th on. Whether all were tried: `k` is
// beyond the last.
bool try_failing(const Case& each, const Graph& graph,
                 const std::shared_ptr<Engine>& engine, bool async,
                 bool is_first, int64_t k, int64_t count) {
  SessionOptions options{.engine = engine, .devices = each.devices};
  options.passes = PassSet::none();
  auto session = make_session(options, graph);
  if (!is_first) must_run(*session, {}, {"y"});
  bool failed = false;
  {
    Call call(*session, async);
    FailAllocation fail(k, count);
    const Answer answer = call();
    fail.stop();
    failed = fail.failed();
    if (!answer.ok()) {
      CAPTURE(answer.status().to_string());
      CHECK(failed);
      CHECK(answer.status().code() == Code::kResourceExhausted);
    }
  }
  TestQueue::global().clear();
  const Answer next = Call(*session, async)();
  CHECK(next.status().to_string() == Status().to_string());
  CHECK(session->close().ok());
  TestQueue::global().clear();
  return !failed;
}

// Ends an engine here and now, not where the worker that is done last lets go
// of it: CAF cannot end a system without memory, and what comes next fails
// allocations.
void end(std::shared_ptr<Engine>&& engine) {
  while (engine.use_count() > 1) std::this_thread::yield();
  engine.reset();
}

// Which allocations of a run fail.
struct Extent {
  int64_t count = 1;  // how many of them, one after another
  int64_t step = 1;   // from the first of one run to that of the next
};

void try_all(const Extent& extent) {
  // Engines live on: CAF cannot end a system without memory.
  const auto engine_of = [](HandOff hand_off) {
    return graph::testing::must(
        Engine::create({.workers = 2, .hand_off = hand_off}));
  };
  auto direct = engine_of(HandOff::kDirect);
  auto by_mail = engine_of(HandOff::kMailbox);
  for (const Case& each : cases()) {
    Graph graph;
    const Scope s(graph);
    ops::identity(s.named("y"), each.build(s));
    REQUIRE(s.status().to_string() == Status().to_string());
    for (const auto& engine : {direct, by_mail})
      for (const bool async : {false, true})
        for (const bool is_first : {true, false}) {
          // Of mail the first run is enough: its actors are new.
          const bool mail = engine == by_mail;
          if (mail && (async || !is_first)) continue;
          const std::string what = fmt::format(
              "{}{}{}{}", each.name, mail ? ", as mail" : "",
              async ? ", asynchronous" : "", is_first ? ", first run" : "");
          constexpr int64_t kMost = 5000;
          int64_t k = 1;
          for (; k < kMost; k += extent.step) {
            INFO(what, ", allocation ", k);
            if (try_failing(each, graph, engine, async, is_first, k,
                            extent.count))
              break;
          }
          CHECK(k < kMost);
          CHECK(k > 1);
        }
  }
  end(std::move(direct));
  end(std::move(by_mail));
}

}  // namespace

TEST_CASE("a run survives that any one of its allocations fails") {
  try_all({.step = tagflow::testing::stride(1)});
}

TEST_CASE("a run survives that several allocations fail in a row") {
  try_all({.count = 2, .step = tagflow::testing::stride(3)});
  try_all({.count = 10, .step = tagflow::testing::stride(7)});
}

TEST_CASE("a run that cannot start when it is its turn leaves the turn") {
  Graph graph;
  const Scope s(graph);
  const Output first = test_block(s, s.constant(Tensor::scalar(2)));
  ops::identity(s.named("y"), test_take(s.with_control_dependencies({first})));
  REQUIRE(s.status().ok());
  constexpr int kRuns = 3;
  TestQueue& queue = TestQueue::global();
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    auto session = make_session({.max_active_runs = 1}, graph);
    Blockade blockade;
    std::array<std::promise<Answer>, kRuns> answers;
    std::atomic<size_t> answered{0};
    for (auto& promise : answers)
      session->run_async({}, {"y"}, {}, {}, [&](Answer answer, RunStats) {
        promise.set_value(std::move(answer));
        ++answered;
      });
    blockade.until_begun(1);
    FailAllocation fail(k);
    // Each gives its turn to the next when it waits.
    blockade.let_go();
    while (queue.waiting() + answered < kRuns) std::this_thread::yield();
    fail.stop();
    for (int i = 0; i < kRuns; ++i) queue.put(i);
    for (auto& promise : answers) {
      const Answer answer = promise.get_future().get();
      if (!answer.ok())
        CHECK(answer.status().code() == Code::kResourceExhausted);
    }
    CHECK(session->close().ok());
    CHECK(session->counters().active == 0);
    queue.clear();
    if (!fail.failed()) break;
  }
}

TEST_CASE("making a session without enough memory is an error, no crash") {
  // The engine of the process is there: CAF does not survive a failure in the
  // making of its system.
  graph::testing::must(Session::create({}));
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    FailAllocation fail(k);
    const auto session = Session::create({.devices = "cpu:2,stream:1"});
    fail.stop();
    if (!session.ok())
      CHECK(session.status().code() == Code::kResourceExhausted);
    if (!fail.failed()) break;
  }
}

TEST_CASE("an engine of one's own ends, whichever of its allocations fails") {
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), counting_loop(s, 5, 8));
  REQUIRE(s.status().ok());
  const std::vector<std::string> fetches{"y"};
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    auto engine = graph::testing::must(Engine::create({.workers = 1}));
    SessionOptions options;
    options.engine = engine;
    FailAllocation fail(k);
    {
      auto session = Session::create(std::move(options));
      if (session.ok() && (*session)->extend(graph).ok())
        (void)(*session)->run({}, fetches).ok();
    }
    fail.stop();
    end(std::move(engine));  // or it waits for ever
    if (!fail.failed()) break;
  }
}

TEST_CASE("a run stops in time, though there is no memory to say why") {
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("take"), test_take(s));
  REQUIRE(s.status().ok());
  TestQueue::global().clear();
  auto session = make_session({.workers = 2}, graph);
  RunOptions options;
  options.timeout = std::chrono::milliseconds(5);
  for (const bool async : {false, true})
    for (int64_t k = 1;; ++k) {
      CAPTURE(async);
      CAPTURE(k);
      const auto callable =
          graph::testing::must(session->make_callable({}, {"take"}));
      std::promise<Answer> promise;
      FailAllocation fail(k);
      Answer answer = error(Code::kInternal, "");
      if (async) {
        callable.run_async({}, options, [&](Answer given, RunStats) {
          promise.set_value(std::move(given));
        });
        answer = promise.get_future().get();
      } else {
        answer = callable({}, options);
      }
      fail.stop();
      CHECK_FALSE(answer.ok());
      while (session->counters().waiting > 0) std::this_thread::yield();
      if (!fail.failed()) break;
    }
}

#if !defined(TAGFLOW_SANITIZES_THREAD) && !defined(TAGFLOW_SANITIZES_ADDRESS)
// The sanitizers have a pthread_create of their own.
TEST_CASE("an engine that gets too few threads is an error") {
  for (int k = 1;; ++k) {
    CAPTURE(k);
    thread_to_fail = k;
    const auto engine = Engine::create({.workers = 4});
    const bool failed = thread_to_fail.exchange(0) <= 0;
    CHECK(engine.ok() == !failed);
    if (failed) {
      CHECK(engine.status().code() == Code::kResourceExhausted);
    } else {
      CHECK(k > 4);
      break;
    }
  }
}
#endif
