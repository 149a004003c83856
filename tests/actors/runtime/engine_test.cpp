// What a session's engine supervises.
#include "actors/runtime/engine.h"

#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <future>
#include <semaphore>
#include <thread>

#include "actors/runtime/engine_actor.h"
#include "graph/fault.h"
#include "tests/actors/held_worker.h"
#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::must;

namespace {

class Ward : public AnnotatedActor {
 public:
  using AnnotatedActor::AnnotatedActor;

 protected:
  caf::behavior make_behavior() override {
    return {[this](Stop&) { quit(); }};
  }
};

}  // namespace

TEST_CASE("smoke: the owner hears of an actor that ends by itself") {
  std::promise<std::string> told;
  const auto engine = must(
      Engine::create({.workers = 1, .on_warning = [&](const std::string& text) {
                        told.set_value(text);
                      }}));
  const caf::actor actor = engine->system().spawn<Ward>();
  engine->supervise(actor);
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  const std::string text = told.get_future().get();
  CAPTURE(text);
  CHECK(text.find("[engine] an actor ended unexpectedly: ") == 0);
  CHECK(text.find("kill") != text.npos);
}

TEST_CASE("smoke: an engine that ends does not warn of its actors' end") {
  bool told = false;
  {
    const auto engine = must(
        Engine::create({.workers = 2, .on_warning = [&](const std::string&) {
                          told = true;
                        }}));
    for (int i = 0; i < 10; ++i)
      engine->supervise(engine->system().spawn<Ward>());
  }
  CHECK_FALSE(told);
}

TEST_CASE("an engine needs no memory to let go of an actor not taken in") {
  const auto engine = must(Engine::create({.workers = 1}));
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    caf::actor actor = spawn_actor<Ward>(engine->system());
    HeldWorker worker(engine->scheduler());
    engine->supervise(actor);
    std::binary_semaphore taken_in{0};
    run_on_worker(engine->scheduler(), [&] { taken_in.release(); });
    FailAllocation fail(k);
    worker.let_go();
    taken_in.acquire();
    fail.stop();
    {
      FailAllocation all(1, INT64_MAX / 2);
      actor = nullptr;
    }
    if (!fail.failed()) break;
  }
}

TEST_CASE("a spawn that fails neither ends the process nor ties its thread") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    // CAF makes its record of a thread with the first spawn on it.
    auto engine = must(Engine::create({.workers = 1}));
    bool failed = false;
    std::binary_semaphore spawned{0}, ended{0};
    std::thread thread([&] {
      FailAllocation fail(k, 2);
      (void)guarded(
          [&] { spawn_actor<Ward, caf::lazy_init>(engine->system()); });
      fail.stop();
      failed = fail.failed();
      spawned.release();
      ended.acquire();
    });
    spawned.acquire();
    engine.reset();  // or it waits for the thread
    ended.release();
    thread.join();
    if (!failed) break;
  }
}
