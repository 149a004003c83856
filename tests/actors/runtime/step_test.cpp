// A step by itself: what it counts and names, and how it is answered.
#include "actors/runtime/step.h"

#include <doctest/doctest.h>

#include <semaphore>

#include "actors/runtime/job.h"
#include "tests/actors/held_worker.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph::testing;

namespace {

// Of a step of which the test has a unit.
struct OneStep {
  OneStep() {
    step->on_quiet = [this](Step&) { ++ended; };
    step->add_activity();
  }
  // The unit of the test's becomes a wait, and the other way round.
  void wait_for(StepWait& wait) {
    step->begin_wait(wait);
    step->drop_activity();
  }

  int ended = 0;
  std::shared_ptr<Step> step = std::make_shared<Step>(1, 0);
};

KernelWait wait_of(devices::WaitsFor what, const graph::Node* node = nullptr) {
  KernelWait wait;
  wait.what = what;
  wait.node = node;
  return wait;
}

constexpr auto kSharedState = devices::WaitsFor::kSharedState;
constexpr auto kOutside = devices::WaitsFor::kOutside;

}  // namespace

TEST_CASE("a step waits for others while it waits for shared state alone") {
  OneStep one;
  Step& step = *one.step;
  KernelWait first = wait_of(kSharedState), second = wait_of(kSharedState);
  KernelWait outside = wait_of(kOutside);
  CHECK_FALSE(step.waits_for_state());
  step.begin_wait(first);
  CHECK_FALSE(step.waits_for_state());  // it is active
  one.wait_for(second);
  CHECK(step.waits_for_state());
  step.end_wait(first);
  CHECK_FALSE(step.waits_for_state());
  CHECK(step.waits_ended() == 1);
  one.wait_for(outside);
  CHECK_FALSE(step.waits_for_state());
  step.end_wait(outside);
  step.drop_activity();
  CHECK(step.waits_for_state());
  CHECK(one.ended == 0);
  step.end_wait(second);
  CHECK(step.waits_ended() == 3);
  step.drop_activity();
  CHECK_FALSE(step.waits_for_state());
  CHECK(one.ended == 1);
}

TEST_CASE("a step is entered from outside until it is over") {
  OneStep one;
  KernelWait wait = wait_of(kOutside);
  REQUIRE(one.step->try_enter());
  one.step->drop_activity();
  one.wait_for(wait);
  REQUIRE(one.step->try_enter());  // while it only waits, too
  one.step->drop_activity();
  CHECK(one.ended == 0);
  one.step->end_wait(wait);
  one.step->drop_activity();
  CHECK(one.ended == 1);
  CHECK_FALSE(one.step->try_enter());
  CHECK(one.ended == 1);
}

TEST_CASE("a report of many waits names the first and counts the others") {
  graph::Graph graph;
  std::vector<KernelWait> waits;
  for (int i = 0; i < 7; ++i)
    waits.push_back(
        wait_of(kOutside, add(graph, "n" + std::to_string(i), "NoOp", {})));
  OneStep one;
  for (int i = 0; i < 5; ++i) one.step->begin_wait(waits[size_t(i)]);
  const std::string five =
      "NoOp \"n0\", NoOp \"n1\", NoOp \"n2\", NoOp \"n3\", NoOp \"n4\"";
  CHECK(one.step->describe_waits() == five);
  for (int i = 5; i < 7; ++i) one.step->begin_wait(waits[size_t(i)]);
  CHECK(one.step->describe_waits() == five + " and 2 more");
  for (StepWait& wait : waits) {
    one.step->end_wait(wait);
    one.step->drop_activity();
  }
  CHECK(one.step->describe_waits().empty());
}

TEST_CASE("a step that is given up says what it waited for at its deadline") {
  graph::Graph graph;
  for (const bool failed : {false, true}) {
    CAPTURE(failed);
    OneStep one;
    Step& step = *one.step;
    step.timeout = std::chrono::milliseconds(1);
    KernelWait wait =
        wait_of(kOutside, add(graph, failed ? "b" : "a", "NoOp", {}));
    step.begin_wait(wait);
    if (failed) step.fail(error(Code::kOutOfRange, "as asked"));
    step.expire();
    CHECK(step.was_stopped() == !failed);
    // The deadline has ended it.
    step.end_wait(wait);
    step.drop_activity();
    step.give_up();
    const Step::Answer answer = step.wait();
    const std::string text = answer.status().to_string();
    CAPTURE(text);
    CHECK((text.find("waited for NoOp \"a\"") != text.npos) == !failed);
    CHECK((text.find("OutOfRange: as asked; 20 ms") != text.npos) == failed);
    step.drop_activity();
  }
}

TEST_CASE("an answer that a worker gives goes before what is less urgent") {
  const auto engine = must(Engine::create({.workers = 1}));
  for (const bool urgent : {true, false}) {
    CAPTURE(urgent);
    std::binary_semaphore through{0};
    HeldWorker held(engine->scheduler());
    std::string order;
    run_on_worker(engine->scheduler(), [&] { order += 'n'; });
    auto step = std::make_shared<Step>(1, 0);
    step->urgent = urgent;
    step->on_answer = [&](Step::Answer, const RunStats&) { order += 'a'; };
    step->scheduler = &engine->scheduler();
    step->answer_on_worker(std::vector<Tensor>(), {});
    // Until then it keeps itself.
    const std::weak_ptr<Step> left = step;
    step.reset();
    CHECK_FALSE(left.expired());
    run_on_worker(engine->scheduler(), [&] { through.release(); });
    held.let_go();
    through.acquire();
    CHECK(order == (urgent ? "an" : "na"));
    CHECK(left.expired());
  }
}

TEST_CASE("a step that is cancelled before it is watched has its grace alone") {
  Timer timer;
  std::binary_semaphore told{0};
  auto step = std::make_shared<Step>(1, 0);
  step->on_answer = [&](Step::Answer answer, const RunStats&) {
    CHECK(answer.status().code() == Code::kCancelled);
    told.release();
  };
  step->timeout = std::chrono::hours(1);
  step->deadline = std::chrono::steady_clock::now() + step->timeout;
  step->stop(error(Code::kCancelled, "as asked"));
  timer.give_grace(*step);
  timer.watch(*step);
  CHECK(told.try_acquire_for(std::chrono::seconds(60)));
}
