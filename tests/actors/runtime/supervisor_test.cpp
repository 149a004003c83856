// The supervisor, message by message.
#include "actors/runtime/supervisor.h"

#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/runtime/stepwise.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

using Texts = std::vector<std::string>;

class Ward : public EngineActor {
 public:
  Ward(caf::actor_config& config, std::string name, Texts& stopped)
      : EngineActor(config, HandOff::kDirect),
        name_(std::move(name)),
        stopped_(stopped) {}
  int short_of_memory = 0;  // so many messages do not fit
  bool throws = false;      // instead of stopping

  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* unit) override {
    if (short_of_memory > 0) {
      --short_of_memory;
      throw std::bad_alloc();
    }
    EngineActor::enqueue(std::move(what), unit);
  }

 protected:
  void on_batch(Batch*, Runner&) override {}
  void on_stop() override {
    if (throws) throw std::runtime_error("of the test");
    stopped_.push_back(name_);
  }

 private:
  const std::string name_;
  Texts& stopped_;
};

// A supervisor of wards "a" and "b".
struct Household {
  Household() {
    actor_pointer<Supervisor>(supervisor)->initialize();
    for (const caf::actor& ward : {a, b}) tell(Adopt{ward});
  }
  ~Household() { tell(Stop{}); }

  template <class Message>
  void tell(Message message) {
    caf::anon_send(supervisor, std::move(message));
    stepwise.scheduler.run();
  }
  void dismiss(std::vector<caf::actor> actors) {
    tell(Dismiss{std::move(actors)});
  }
  // The ward ends, though the supervisor has not asked for it.
  void end_by_itself(const caf::actor& ward) {
    pointer(ward).throws = true;
    caf::anon_send(ward, Stop{});
    stepwise.scheduler.run();
  }
  static Ward& pointer(const caf::actor& ward) {
    return *actor_pointer<Ward>(ward);
  }
  caf::actor spawn(const char* name) {
    return stepwise.system.spawn<Ward, caf::lazy_init>(std::string(name),
                                                       std::ref(stopped));
  }

  Texts stopped, warnings;
  bool warning_throws = false;
  StepwiseSystem stepwise;
  caf::actor a = spawn("a"), b = spawn("b");
  caf::actor supervisor = stepwise.system.spawn<Supervisor, caf::lazy_init>(
      Warn([this](const std::string& text) {
        warnings.push_back(text);
        if (warning_throws) throw std::runtime_error("of the test");
      }));
};

}  // namespace

TEST_CASE("the end of an actor that nobody has stopped is warned of") {
  Household household;
  household.end_by_itself(household.a);
  CHECK(household.warnings ==
        Texts{"[engine] an actor ended unexpectedly: something was thrown"});
  CHECK(household.stopped.empty());
}

TEST_CASE("a warning that throws leaves the supervisor at work") {
  Household household;
  household.warning_throws = true;
  household.end_by_itself(household.a);
  household.end_by_itself(household.b);
  CHECK(household.warnings.size() == 2);
}

TEST_CASE("a dismissed actor is stopped, alone and without a warning") {
  Household household;
  household.dismiss({household.b});
  CHECK(household.stopped == Texts{"b"});
  household.dismiss({household.a});
  CHECK(household.stopped == Texts{"b", "a"});
  CHECK(household.warnings.empty());
}

TEST_CASE("an actor that was never adopted can be dismissed") {
  Household household;
  household.dismiss({household.spawn("c")});
  CHECK(household.stopped == Texts{"c"});
}

TEST_CASE("the end of the supervisor stops all actors that it has") {
  Household household;
  household.dismiss({household.a});
  household.tell(Stop{});
  CHECK(household.stopped == Texts{"a", "b"});
  CHECK(household.warnings.empty());
  // CAF refuses what else is sent.
  caf::anon_send(household.supervisor, Stop{});
  CHECK_FALSE(household.stepwise.scheduler.has_job());
}

TEST_CASE("an actor is stopped though memory is short for a moment") {
  Household household;
  household.pointer(household.a).short_of_memory = 2;
  household.dismiss({household.a});
  CHECK(household.stopped == Texts{"a"});
}

TEST_CASE("an actor that no memory is left to stop lives until the next try") {
  for (const bool next_is_end : {false, true}) {
    CAPTURE(next_is_end);
    Household household;
    household.pointer(household.a).short_of_memory = 3;
    household.dismiss({household.a});
    CHECK(household.stopped.empty());
    if (next_is_end) {
      household.tell(Stop{});
      CHECK(household.stopped == Texts{"a", "b"});
    } else {
      household.dismiss({});
      CHECK(household.stopped == Texts{"a"});
    }
    CHECK(household.warnings.empty());
  }
}
