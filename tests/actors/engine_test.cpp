// What a session's engine supervises.
#include "actors/engine.h"

#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <future>

#include "actors/engine_actor.h"
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

TEST_CASE("smoke: nothing is said of actors that end with the engine") {
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
