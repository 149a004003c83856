// The steps of a master at one worker: Note [Early and dead].
#include "net/protocol/worker_steps.h"

#include <doctest/doctest.h>

#include <string>

using namespace tagflow;
using namespace tagflow::net;
using Fate = WorkerSteps::Fate;

namespace {

Status script_error() { return error(Code::kInvalidArgument, "bad feed"); }
Status abort_cause() { return error(Code::kUnavailable, "a worker is lost"); }

StepId id(uint64_t step) { return StepId{step}; }

struct Fixture {
  WorkerSteps steps;
  WorkerSteps::Actions actions;

  void run(uint64_t step) { REQUIRE(steps.on_run(id(step), actions).ok()); }
  void abort(uint64_t step) {
    steps.on_abort(id(step), abort_cause(), actions);
  }
  void local_error(uint64_t step) {
    steps.on_local_error(id(step), script_error(), actions);
  }
  void local_over(uint64_t step, const Status& status = {},
                  bool has_committed = false) {
    steps.on_local_over(id(step), status, has_committed, actions);
  }
  // "start 1, drop 1, ..." of all actions, which are then forgotten.
  std::string text() {
    std::string text;
    for (const auto& action : actions) {
      if (!text.empty()) text += ", ";
      const char* names[] = {"start", "fail", "drop", "failed", "done"};
      text += names[action.index()];
      text += std::visit(
          [](const auto& one) {
            return " " + std::to_string(uint64_t(one.step));
          },
          action);
      if (const auto* told = std::get_if<WorkerSteps::TellDone>(&action)) {
        text += told->done.status.ok() ? " ok" : " error";
        if (told->done.is_cause) text += " cause";
        if (told->done.has_committed) text += " committed";
      }
    }
    actions.clear();
    return text;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "smoke: a part runs and is done") {
  run(1);
  CHECK(text() == "start 1");
  CHECK(steps.num_active() == 1);
  local_over(1, Status(), true);
  CHECK(text() == "done 1 ok committed");
  CHECK(steps.num_active() == 0);
}

TEST_CASE_FIXTURE(Fixture, "smoke: tokens before the Run are kept") {
  CHECK(steps.fate_of(id(1)) == Fate::kKeep);
  run(1);
  CHECK(steps.fate_of(id(1)) == Fate::kDeliver);
  CHECK(steps.fate_of(id(2)) == Fate::kKeep);
}

TEST_CASE_FIXTURE(Fixture, "smoke: tokens after the end are dropped") {
  run(1);
  local_over(1);
  CHECK(steps.fate_of(id(1)) == Fate::kDrop);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a step that is not on this worker is dead") {
  run(5);
  for (uint64_t step = 1; step < 5; ++step)
    CHECK(steps.fate_of(id(step)) == Fate::kDrop);
  CHECK(steps.fate_of(id(6)) == Fate::kKeep);
}

TEST_CASE_FIXTURE(Fixture, "smoke: several steps are active at a time") {
  for (uint64_t step : {1, 3, 4, 8}) run(step);
  local_over(3);
  CHECK(steps.fate_of(id(1)) == Fate::kDeliver);
  CHECK(steps.fate_of(id(3)) == Fate::kDrop);
  CHECK(steps.fate_of(id(4)) == Fate::kDeliver);
  CHECK(steps.fate_of(id(8)) == Fate::kDeliver);
  local_over(8);
  local_over(1);
  local_over(4);
  CHECK(steps.num_active() == 0);
  CHECK(steps.last_run() == id(8));
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a master whose numbers do not grow is refused") {
  run(3);
  for (uint64_t step : {1, 3}) {
    const Status status = steps.on_run(id(step), actions);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message() == "[run] the master runs step " +
                                  std::to_string(step) +
                                  " after step 3: the numbers of steps grow");
  }
  CHECK(text() == "start 3");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: an aborted part is done at rest, not before") {
  run(1);
  text();
  abort(1);
  CHECK(text() == "drop 1, fail 1");
  CHECK(steps.num_active() == 1);
  CHECK(steps.fate_of(id(1)) == Fate::kDrop);
  local_over(1, abort_cause(), true);
  CHECK(text() == "done 1 error committed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the error of an aborted part is no cause") {
  run(1);
  abort(1);
  text();
  local_error(1);
  CHECK(text() == "");
  local_over(1, script_error());
  CHECK(text() == "done 1 error");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a part that fails says so before it is at rest") {
  run(1);
  text();
  local_error(1);
  CHECK(text() == "drop 1, failed 1");
  CHECK(steps.fate_of(id(1)) == Fate::kDrop);
  local_over(1, script_error());
  CHECK(text() == "done 1 error cause");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the answering Abort changes nothing") {
  run(1);
  local_error(1);
  text();
  abort(1);
  local_error(1);
  CHECK(text() == "");
  local_over(1, script_error());
  abort(1);
  CHECK(text() == "done 1 error cause");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a part that fails at rest drops, too") {
  run(1);
  text();
  local_over(1, script_error());
  CHECK(text() == "drop 1, done 1 error cause");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a part can succeed although it is aborted") {
  run(1);
  abort(1);
  text();
  local_over(1, Status(), true);
  CHECK(text() == "done 1 ok committed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: an Abort of a dead step has no effect") {
  run(1);
  local_over(1);
  run(4);
  text();
  abort(1);
  abort(2);
  CHECK(text() == "");
  abort(4);
  CHECK(text() == "drop 4, fail 4");
  abort(4);
  CHECK(text() == "");
}

TEST_CASE_FIXTURE(Fixture, "smoke: an Abort before the Run closes the step") {
  CHECK(steps.fate_of(id(2)) == Fate::kKeep);
  abort(2);
  CHECK(text() == "drop 2, done 2 error");
  CHECK(steps.fate_of(id(2)) == Fate::kDrop);
  CHECK_FALSE(steps.on_run(id(2), actions).ok());
  run(3);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a part is done once") {
  run(1);
  local_over(1);
  text();
  local_over(1);
  local_error(1);
  CHECK(text() == "");
}
