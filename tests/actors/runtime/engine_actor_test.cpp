// Hand-off, delivery and holding, hop by hop, under CAF's deterministic
// scheduler: only the test runs actors.
#include "actors/runtime/engine_actor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <caf/send.hpp>
#include <functional>
#include <memory>
#include <string>

#include "actors/runtime/step.h"
#include "tests/actors/runtime/stepwise.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

struct Rally;

// Hits each batch on to the other player, until the batch has been hit
// `limit` times.
class Player : public EngineActor {
 public:
  Player(caf::actor_config& config, Rally& rally, char name)
      : EngineActor(config, HandOff::kDirect), rally_(rally), name_(name) {
    if (name == 'S') set_shared();
  }
  EngineActor* other = nullptr;

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  Rally& rally_;
  const char name_;
};

// Two players; the thread of the test is lent to them.
struct Rally : StepwiseSystem {
  explicit Rally(bool at_rest) : rests(at_rest) {
    a->other = b;
    b->other = a;
    step->on_quiet = [this](Step&) { quiet = true; };
    step->add_activity();  // the test's own
  }
  ~Rally() {
    caf::anon_send(first, Stop{});
    caf::anon_send(second, Stop{});
    scheduler.run();
  }

  Batch* serve(int64_t limit) {
    auto* batch = new Batch;
    batch->step = step.get();
    batch->count = uint32_t(limit);
    return batch;
  }
  void play(Batch* batch,
            std::chrono::nanoseconds quantum = std::chrono::hours(1)) {
    Runner runner(nullptr, HandOff::kDirect, quantum);
    runner.post(a, batch);
    runner.drain();
  }
  // Ends the step, which must have come to rest.
  bool over() {
    step->drop_activity();
    return quiet;
  }

  const bool rests;
  caf::actor first = system.spawn<Player, caf::lazy_init>(std::ref(*this), 'a');
  caf::actor second =
      system.spawn<Player, caf::lazy_init>(std::ref(*this), 'b');
  Player* a = actor_pointer<Player>(first);
  Player* b = actor_pointer<Player>(second);
  std::shared_ptr<Step> step = std::make_shared<Step>(1, 0);
  bool quiet = false;
  std::string log;                               // who hit
  std::function<void(int64_t, Runner&)> during;  // the n-th hit
};

void Player::on_batch(Batch* batch, Runner& runner) {
  rally_.log += name_;
  set_at_rest(rally_.rests);
  const int64_t hit = ++batch->iteration;
  if (rally_.during) rally_.during(hit, runner);
  if (hit == batch->count) {
    pool().give(batch);
  } else {
    runner.post(other, batch);
  }
}

}  // namespace

TEST_CASE("smoke: a chain of hand-offs never meets the scheduler") {
  for (const bool rests : {false, true}) {
    CAPTURE(rests);
    Rally rally(rests);
    rally.play(rally.serve(7));
    CHECK(rally.log == "abababa");
    CHECK_FALSE(rally.scheduler.has_job());
    CHECK(rally.over());
  }
}

TEST_CASE("smoke: an actor that was held is let go of at the end") {
  Rally rally(true);
  rally.play(rally.serve(4));
  // Whoever delivers now finds it idle, and wakes it.
  rally.step->add_activity();
  rally.b->deliver(rally.serve(1));
  CHECK(rally.scheduler.has_job());
  rally.scheduler.run();
  CHECK(rally.log == "ababb");
  CHECK(rally.over());
}

TEST_CASE("smoke: a held actor loses no message from elsewhere") {
  // Where it comes in the middle, the rally goes on behind it, by way of the
  // scheduler.
  for (int64_t hit = 1; hit <= 6; ++hit) {
    CAPTURE(hit);
    Rally rally(true);
    bool delivered = false;
    rally.during = [&](int64_t now, Runner&) {
      if (now != hit || std::exchange(delivered, true)) return;
      rally.step->add_activity();
      rally.a->deliver(rally.serve(1));
    };
    rally.play(rally.serve(6));
    CHECK(rally.scheduler.has_job());
    rally.scheduler.run();
    CHECK(std::ranges::count(rally.log, 'a') == 4);
    CHECK(std::ranges::count(rally.log, 'b') == 3);
    CHECK(rally.over());
  }
}

TEST_CASE("smoke: a held actor is let go of before work moves elsewhere") {
  Rally rally(true);
  rally.during = [&](int64_t now, Runner& runner) {
    if (now != 5) return;
    // As before a long kernel: the rest of the rally goes to the scheduler.
    Batch* batch = rally.serve(3);
    rally.step->add_activity();
    runner.post_counted(rally.b, batch);
    runner.flush();
    CHECK(rally.scheduler.jobs.size() == 1);
    // The actor in hand was held before: it is not let go of meanwhile.
    rally.step->add_activity();
    rally.a->deliver(rally.serve(1));
    CHECK(rally.scheduler.jobs.size() == 1);
  };
  rally.play(rally.serve(5));
  CHECK(rally.log == "ababa");
  CHECK(rally.scheduler.jobs.size() == 2);
  rally.during = nullptr;
  rally.scheduler.run();
  CHECK(rally.log.size() == 9);
  CHECK(rally.over());
}

TEST_CASE("smoke: a rally whose time slice ends goes on by the scheduler") {
  Rally rally(true);
  rally.play(rally.serve(50), std::chrono::nanoseconds(0));
  CHECK(rally.log.size() < 50);
  CHECK(rally.scheduler.jobs.size() == 1);
  rally.scheduler.run();
  CHECK(rally.log.size() == 50);
  CHECK(rally.over());
}

TEST_CASE("smoke: the third actor takes the place of the one held longest") {
  Rally rally(true);
  const caf::actor handle =
      rally.system.spawn<Player, caf::lazy_init>(std::ref(rally), 'c');
  auto* c = actor_pointer<Player>(handle);
  rally.b->other = c;  // a b c a b c ...
  c->other = rally.a;
  rally.during = [&](int64_t now, Runner&) {
    if (now != 6) return;
    // a and b are held, c is in hand: one that was let go of would be woken.
    for (Player* player : {rally.a, rally.b, c}) {
      rally.step->add_activity();
      player->deliver(rally.serve(1));
    }
    CHECK_FALSE(rally.scheduler.has_job());
  };
  rally.play(rally.serve(8));
  rally.during = nullptr;
  rally.scheduler.run();
  CHECK(rally.log.size() == 11);
  CHECK(rally.over());
  caf::anon_send(handle, Stop{});
}

TEST_CASE("smoke: a message of CAF's reaches an actor that is held") {
  Rally rally(true);
  rally.during = [&](int64_t now, Runner&) {
    if (now == 6) caf::anon_send(rally.first, Stop{});
  };
  rally.play(rally.serve(6));
  CHECK(rally.log == "ababab");
  CHECK(rally.scheduler.has_job());
  rally.scheduler.run();
  CHECK(rally.over());
  // It has stopped: CAF refuses what else is sent.
  caf::anon_send(rally.first, Stop{});
  CHECK_FALSE(rally.scheduler.has_job());
}

TEST_CASE("a caller's thread does not run what others wait for") {
  for (const bool is_callers : {true, false}) {
    CAPTURE(is_callers);
    Rally rally(false);
    const caf::actor shared =
        rally.system.spawn<Player, caf::lazy_init>(std::ref(rally), 'S');
    rally.a->other = actor_pointer<Player>(shared);
    const std::atomic<int> nobody{0};
    {
      Runner runner(nullptr, HandOff::kDirect, std::chrono::hours(1), 0,
                    is_callers ? nullptr : &nobody);
      runner.post(rally.a, rally.serve(2));
      runner.drain();
    }
    CHECK(rally.log == (is_callers ? "a" : "aS"));
    rally.scheduler.run();
    CHECK(rally.log == "aS");
    CHECK(rally.over());
    caf::anon_send(shared, Stop{});
  }
}
