// The order of turns: among actors, among runs at a device, inside one run.
#include "actors/runtime/scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <semaphore>
#include <string>

#include "actors/runtime/job.h"
#include "tests/actors/held_worker.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

using Answer = Result<std::vector<Tensor>>;

std::future<Answer> start(Session& session, const std::string& fetch,
                          const RunOptions& options = {}) {
  auto promise = std::make_shared<std::promise<Answer>>();
  session.run_async({}, {fetch}, {}, options,
                    [promise](Answer answer, RunStats) {
                      promise->set_value(std::move(answer));
                    });
  return promise->get_future();
}

}  // namespace

TEST_CASE(
    "smoke: jobs run in the order in which they came, urgent ones first") {
  const auto engine = graph::testing::must(Engine::create({.workers = 1}));
  std::binary_semaphore through{0};
  HeldWorker held(engine->scheduler());
  std::string order;
  for (const char name : {'a', 'b', 'U', 'c', 'V'}) {
    auto* job = new Job([&order, name] { order += name; });
    job->ready.urgent = name < 'a';
    engine->scheduler().enqueue(job->ready);
  }
  CHECK(engine->scheduler().has_waiting());
  run_on_worker(engine->scheduler(), [&] { through.release(); });
  held.let_go();
  through.acquire();
  CHECK(order == "UVabc");
}

TEST_CASE("smoke: urgent jobs do not keep the others waiting for ever") {
  const auto engine = graph::testing::must(Engine::create({.workers = 1}));
  std::counting_semaphore<> done{0};
  HeldWorker held(engine->scheduler());
  std::string order;
  for (int i = 0; i < 100; ++i) {
    auto* job = new Job([&] {
      order += 'U';
      done.release();
    });
    job->ready.urgent = true;
    engine->scheduler().enqueue(job->ready);
  }
  run_on_worker(engine->scheduler(), [&] {
    order += 'n';
    done.release();
  });
  held.let_go();
  for (int i = 0; i < 101; ++i) done.acquire();
  CHECK(order.find('n') < 20);
}

TEST_CASE("the urgent queue goes first, but not for ever") {
  UrgentFirst order;
  CHECK_FALSE(order.take_urgent(false, true));
  int urgent = 0;
  for (int i = 0; i < 10 * UrgentFirst::kInARow; ++i)
    urgent += order.take_urgent(true, true) ? 1 : 0;
  CHECK(urgent == 10 * (UrgentFirst::kInARow - 1));
  for (int i = 0; i < 2 * UrgentFirst::kInARow; ++i)
    CHECK(order.take_urgent(true, false));
}

TEST_CASE("smoke: urgent runs leave a device to the others now and then") {
  // Each urgent run starts the next one, until the other run is answered.
  Graph graph;
  const Scope s(graph);
  const Output x = s.constant(Tensor::scalar(2));
  ops::identity(s.named("y"), test_block(s, x));
  Inputs both{test_block(s, x), test_block(s, x)};
  ops::add_n(s.named("z"), both);
  REQUIRE(s.status().ok());
  const auto engine = graph::testing::must(Engine::create({.workers = 1}));
  auto session = make_session({.engine = engine}, graph);
  std::atomic<bool> over{false};
  std::atomic<int> open{0};
  RunOptions urgent;
  urgent.priority = Priority::kHigh;
  std::function<void()> next = [&] {
    ++open;
    session->run_async({}, {"z"}, {}, urgent, [&](Answer, RunStats) {
      if (!over) next();
      --open;
    });
  };
  for (int i = 0; i < 4; ++i) next();
  CHECK(start(*session, "z").get().ok());
  over = true;
  while (open > 0) std::this_thread::yield();
}

TEST_CASE("urgent jobs go first again after the others have had a turn") {
  const auto engine = graph::testing::must(Engine::create({.workers = 1}));
  std::counting_semaphore<> done{0};
  HeldWorker held(engine->scheduler());
  std::string order;
  const auto enqueue = [&](char name) {
    auto* job = new Job([&, name] {
      order += name;
      done.release();
    });
    job->ready.urgent = name == 'U';
    engine->scheduler().enqueue(job->ready);
  };
  for (int i = 0; i < 5; ++i) enqueue('n');
  for (int i = 0; i < 60; ++i) enqueue('U');
  held.let_go();
  for (int i = 0; i < 65; ++i) done.acquire();
  const std::string many(15, 'U');
  CHECK(order.starts_with(many + 'n' + many + 'n' + many + 'n'));
}

TEST_CASE("smoke: an idle engine's job is done by any of its workers") {
  const auto engine = graph::testing::must(Engine::create({.workers = 3}));
  for (int round = 0; round < 100; ++round) {
    std::counting_semaphore<> done{0};
    for (int i = 0; i < 10; ++i)
      run_on_worker(engine->scheduler(), [&] { done.release(); });
    for (int i = 0; i < 10; ++i) done.acquire();
  }
}

// One worker, one lane. What runs first holds the lane; then one run asks for
// ten kernels and another, later, for one.
TEST_CASE("smoke: at a device runs take turns, urgent ones first") {
  Graph graph;
  const Scope s(graph);
  const auto block = [&](const std::string& name) {
    return test_block(s.named(name), s.constant(Tensor::scalar(1)));
  };
  block("first");
  Inputs many;
  for (int i = 0; i < 10; ++i) many.add(block(fmt::format("many{}", i)));
  ops::add_n(s.named("sum"), many);
  block("one");
  block("urgent");
  REQUIRE(s.status().ok());
  SessionOptions options{.workers = 1};
  options.passes = PassSet::none();
  auto session = make_session(options, graph);
  // Compiled beforehand.
  for (const char* name : {"first", "sum", "one", "urgent"})
    must_run(*session, {}, {name});
  Blockade blockade;
  std::vector<std::future<Answer>> answers;
  answers.push_back(start(*session, "first"));
  blockade.until_begun(1);
  answers.push_back(start(*session, "sum"));
  answers.push_back(start(*session, "one"));
  answers.push_back(start(*session, "urgent", {.priority = Priority::kHigh}));
  blockade.let_go();
  for (auto& answer : answers) REQUIRE(answer.get().ok());
  const std::vector<std::string> order = blockade.order();
  const auto place = [&](const char* name) {
    return std::ranges::find(order, name) - order.begin();
  };
  REQUIRE(order.size() == 13);
  CHECK(order[0] == "first");
  CHECK(place("urgent") <= 2);
  CHECK(place("one") <= 4);
}

TEST_CASE("smoke: an iteration that yields in the middle loses nothing") {
  // Long chains beside one another, which take many time slices, while others
  // want the worker.
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kInt32, PartialShape::scalar());
  Inputs ends;
  for (int chain = 0; chain < 20; ++chain) {
    Output y = x;
    for (int i = 0; i < 2000; ++i) y = ops::add(s, y, 1);
    ends.add(y);
  }
  ops::add_n(s.named("y"), ends);
  ops::identity(s.named("small"), x);
  REQUIRE(s.status().ok());
  for (SessionOptions options : hand_offs_by_workers()) {
    options.passes = PassSet::none();
    INFO(describe(options));
    auto session = make_session(options, graph);
    std::vector<std::future<Answer>> answers;
    for (int i = 0; i < 10; ++i) {
      auto promise = std::make_shared<std::promise<Answer>>();
      answers.push_back(promise->get_future());
      session->run_async({{"x", Tensor::scalar(i)}}, {i % 2 ? "small" : "y"},
                         {}, {}, [promise](Answer answer, RunStats) {
                           promise->set_value(std::move(answer));
                         });
    }
    for (int i = 0; i < 10; ++i) {
      const Answer answer = answers[size_t(i)].get();
      REQUIRE(answer.ok());
      CHECK((*answer)[0].scalar_value<int>() == (i % 2 ? i : 20 * (i + 2000)));
    }
  }
}

TEST_CASE("smoke: a token reaches very many consumers, in parts") {
  // In each iteration a value, a dead side, a control output and a loop
  // constant have more consumers than a part takes.
  constexpr int kConsumers = 10'000;
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kInt32, PartialShape::scalar());
  const auto many_times = [](const Scope& in, const Output& from) {
    Inputs many;
    for (int i = 0; i < kConsumers; ++i) many.add(ops::neg(in, from));
    return ops::add_n(in, many);
  };
  const Outputs r = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 4); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const auto sides = ops::switch_(
            in, v[0], ops::less(in, ops::floor_mod(in, v[0], 2), 1));
        const auto sum = ops::merge(in, {many_times(in, sides.on_false),
                                         many_times(in, sides.on_true)});
        const Output before = ops::no_op(in);
        const Output late =
            many_times(in.with_control_dependencies({before}), x);
        return {ops::add(in, v[0], 1), ops::add(in, v[1], sum.output),
                ops::add(in, v[2], late)};
      },
      {0, 0, 0});
  ops::identity(s.named("sum"), r[1]);
  ops::identity(s.named("late"), r[2]);
  REQUIRE(s.status().ok());
  for (SessionOptions options : hand_offs_by_workers()) {
    options.passes = PassSet::none();
    INFO(describe(options));
    auto session = make_session(options, graph);
    for (int run = 1; run <= 2; ++run) {
      const std::vector<Tensor> sums =
          must_run(*session, {{"x", Tensor::scalar(run)}}, {"sum", "late"});
      CHECK(sums[0].scalar_value<int>() == -kConsumers * (0 + 1 + 2 + 3));
      CHECK(sums[1].scalar_value<int>() == -kConsumers * 4 * run);
    }
  }
}

TEST_CASE("an urgent run goes before those that came first") {
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), s.constant(Tensor::scalar(1)));
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.engine = graph::testing::must(Engine::create({.workers = 1}));
  auto session = make_session(options, graph);
  must_run(*session, {}, {"y"});
  std::counting_semaphore<> done{0};
  HeldWorker held(options.engine->scheduler());
  std::string order;
  for (const char name : {'a', 'b', 'U'}) {
    RunOptions run;
    if (name == 'U') run.priority = Priority::kHigh;
    session->run_async({}, {"y"}, {}, run, [&, name](Answer answer, RunStats) {
      CHECK(answer.ok());
      order += name;
      done.release();
    });
  }
  held.let_go();
  for (int i = 0; i < 3; ++i) done.acquire();
  CHECK(order == "Uab");
}

TEST_CASE("a run whose hops never end leaves a worker to others") {
  Graph graph;
  const Scope s(graph);
  const Outputs endless = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, ops::mul(in, v[0], 0), 1);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in, v[0], 1);
      },
      {0});
  ops::identity(s.named("y"), s.constant(Tensor::scalar(1)));
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : hand_offs_by_workers()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    std::vector<std::future<Answer>> answers;
    for (int i = 0; i < 2; ++i)
      answers.push_back(start(*session, endless[0].name()));
    for (int i = 0; i < 5; ++i) CHECK(start(*session, "y").get().ok());
    CHECK(session->close().ok());
    for (auto& answer : answers)
      CHECK(answer.get().status().code() == Code::kCancelled);
  }
}
