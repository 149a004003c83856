// What a session's engine supervises.
#include "actors/engine.h"

#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <future>

#include "actors/engine_actor.h"

using namespace tagflow;
using namespace tagflow::actors;

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
  SessionOptions options;
  options.workers = 1;
  options.on_warning = [&](const std::string& text) { told.set_value(text); };
  Engine engine(options, {});
  const caf::actor actor = engine.system().spawn<Ward>();
  engine.supervise(actor);
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  const std::string text = told.get_future().get();
  CAPTURE(text);
  CHECK(text.find("[engine] an actor ended unexpectedly: ") == 0);
  CHECK(text.find("kill") != text.npos);
}

TEST_CASE("smoke: nothing is said of actors that end with the engine") {
  bool told = false;
  SessionOptions options;
  options.workers = 2;
  options.on_warning = [&](const std::string&) { told = true; };
  {
    Engine engine(options, {});
    for (int i = 0; i < 10; ++i)
      engine.supervise(engine.system().spawn<Ward>());
  }
  CHECK_FALSE(told);
}
