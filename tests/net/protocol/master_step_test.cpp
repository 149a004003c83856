// One step at its master: Note [End of a step], Note [First cause], Note [Late
// commits] and Note [Torn state].
#include "net/protocol/master_step.h"

#include <doctest/doctest.h>

#include <string>

using namespace tagflow;
using namespace tagflow::net;
using std::chrono::milliseconds;

namespace {

constexpr TaskIndex kA{0}, kB{1}, kC{2};

Time at(int ms) { return Time() + milliseconds(ms); }
Incarnation incarnation_of(TaskIndex task) {
  return Incarnation{uint64_t(task) + 100};
}
Status script_error() { return error(Code::kInvalidArgument, "bad feed"); }
Status loss_of(const char* what) {
  return error(Code::kUnavailable, "{} is lost", what);
}
Status consequence() { return error(Code::kCancelled, "the part is aborted"); }

// Three workers; A and B exchange tokens, B and C do; A and B update.
struct Fixture {
  MasterStep step = make({});
  MasterStep::Actions actions;

  static MasterStep make(MasterStep::Limits limits) {
    return MasterStep(StepId{7},
                      {{kA, incarnation_of(kA), "a", true},
                       {kB, incarnation_of(kB), "b", true},
                       {kC, incarnation_of(kC), "c", false}},
                      {{kA, kB}, {kB, kC}}, limits);
  }

  void begin() {
    step.begin(actions);
    actions.clear();
  }
  Status done(TaskIndex task, MasterStep::Done done = {}, int ms = 1) {
    return step.on_done(task, done, at(ms), actions);
  }
  void fail(TaskIndex task, int ms = 1) {
    step.on_failed(task, script_error(), at(ms), actions);
  }
  void aborted(TaskIndex task, bool has_committed = false) {
    REQUIRE(done(task, {consequence(), false, has_committed}).ok());
  }
  void lose(TaskIndex task, int ms = 1) {
    step.on_lost(task, incarnation_of(task), loss_of("a worker"), at(ms),
                 actions);
  }
  void lose_pair(TaskIndex task, TaskIndex peer) {
    step.on_pair_lost(task, peer, incarnation_of(peer), loss_of("a link"),
                      at(1), actions);
  }
  template <class Action>
  size_t count() const {
    size_t count = 0;
    for (const auto& action : actions)
      count += std::holds_alternative<Action>(action);
    return count;
  }
  // The only answer.
  MasterStep::Answer answer() const {
    REQUIRE(count<MasterStep::Answer>() == 1);
    for (const auto& action : actions)
      if (const auto* found = std::get_if<MasterStep::Answer>(&action))
        return *found;
    return {};
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "smoke: a step begins on all its workers") {
  step.begin(actions);
  REQUIRE(actions.size() == 3);
  CHECK(std::get<MasterStep::SendRun>(actions[0]).task == kA);
  CHECK(std::get<MasterStep::SendRun>(actions[2]).task == kC);
  CHECK(step.is_running());
  CHECK(step.next() == kNever);
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a step succeeds by the last Done, not before") {
  begin();
  REQUIRE(done(kB).ok());
  REQUIRE(done(kC).ok());
  CHECK(actions.empty());
  REQUIRE(done(kA).ok());
  CHECK(answer().status.ok());
  CHECK_FALSE(answer().tears);
  CHECK(step.is_answered());
  CHECK(actions.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a second Done breaks the protocol") {
  begin();
  REQUIRE(done(kB).ok());
  const Status status = done(kB);
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message() == "[run] b says Done of step 7 twice");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a Done of a worker without a part is refused") {
  begin();
  CHECK(done(TaskIndex{9}).message() ==
        "[run] task 9 says Done of step 7, which is not on it");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a failure is spread at once") {
  begin();
  REQUIRE(done(kC).ok());
  fail(kA);
  // Also to the one that has failed; not to the one that is over.
  REQUIRE(count<MasterStep::SendAbort>() == 2);
  const auto& abort = std::get<MasterStep::SendAbort>(actions[1]);
  CHECK(abort.task == kB);
  CHECK(abort.cause.message() == "bad feed");
  CHECK(count<MasterStep::Answer>() == 0);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a failed step is answered at rest") {
  begin();
  fail(kA);
  REQUIRE(done(kA, {script_error(), true, false}).ok());
  aborted(kB);
  CHECK(count<MasterStep::Answer>() == 0);
  aborted(kC);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a Done with an error is a failure, too") {
  begin();
  REQUIRE(done(kA, {script_error(), true, false}).ok());
  CHECK(count<MasterStep::SendAbort>() == 2);
  aborted(kB);
  aborted(kC);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the abort is spread once") {
  begin();
  fail(kA);
  fail(kB);
  lose(kC);
  CHECK(count<MasterStep::SendAbort>() == 3);
}

TEST_CASE_FIXTURE(Fixture, "smoke: of two errors the first wins") {
  begin();
  fail(kA);
  step.on_failed(kB, error(Code::kOutOfRange, "end of input"), at(2), actions);
  step.on_stopped(error(Code::kCancelled, "by the caller"), at(3), actions);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: an error wins over a loss that was seen first") {
  begin();
  lose_pair(kB, kA);
  fail(kA);
  lose(kA);
  aborted(kB);
  aborted(kC);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a loss does not win over an error") {
  begin();
  fail(kA);
  lose(kA);
  aborted(kB);
  aborted(kC);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a consequence never wins over its cause") {
  begin();
  lose(kA);
  aborted(kB);
  aborted(kC);
  CHECK(answer().status.message() == "a worker is lost");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the caller's stop is a cause") {
  begin();
  step.on_stopped(error(Code::kCancelled, "by the caller"), at(3), actions);
  CHECK(count<MasterStep::SendAbort>() == 3);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK(answer().status.to_string() ==
        "Cancelled: by the caller; a: the part is aborted; b: the part is "
        "aborted; c: the part is aborted");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a stop says what each part waited for") {
  begin();
  REQUIRE(done(kC).ok());
  step.on_stopped(error(Code::kDeadlock, "stuck"), at(3), actions);
  CHECK(step.running() == std::vector<std::string>{"a", "b"});
  REQUIRE(done(kA, {error(Code::kDeadlock, "x waits for y"), false}).ok());
  REQUIRE(done(kB, {Status(Code::kDeadlock, ""), false}).ok());
  CHECK(answer().status.to_string() == "Deadlock: stuck; a: x waits for y");
}

TEST_CASE_FIXTURE(Fixture, "smoke: an error of a part is not explained") {
  begin();
  fail(kA);
  step.on_stopped(error(Code::kCancelled, "by the caller"), at(3), actions);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a part may succeed although it is aborted") {
  begin();
  fail(kA);
  REQUIRE(done(kA, {script_error(), true, false}).ok());
  REQUIRE(done(kB).ok());
  REQUIRE(done(kC).ok());
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the loss of a worker fails its steps") {
  begin();
  lose(kB);
  CHECK(count<MasterStep::SendAbort>() == 2);
  aborted(kA);
  aborted(kC);
  CHECK(answer().status.message() == "a worker is lost");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the loss of a worker that is over counts") {
  begin();
  REQUIRE(done(kB).ok());
  lose(kB);
  aborted(kA);
  aborted(kC);
  CHECK(answer().status.message() == "a worker is lost");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: the loss of another incarnation has no effect") {
  begin();
  step.on_lost(kB, Incarnation{1}, loss_of("b"), at(1), actions);
  step.on_lost(TaskIndex{9}, Incarnation{1}, loss_of("x"), at(1), actions);
  CHECK(actions.empty());
  CHECK(step.is_running());
}

TEST_CASE_FIXTURE(Fixture, "smoke: a Done of a lost worker has no effect") {
  begin();
  lose(kB);
  CHECK(done(kB).ok());
  aborted(kA);
  aborted(kC);
  CHECK(answer().status.message() == "a worker is lost");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a step whose workers are all lost is answered") {
  begin();
  for (TaskIndex task : {kA, kB, kC}) lose(task);
  CHECK(answer().status.message() == "a worker is lost");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: the loss of a session fails a step that uses it") {
  begin();
  lose_pair(kA, kC);
  CHECK(actions.empty());
  lose_pair(kC, kB);
  CHECK(count<MasterStep::SendAbort>() == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: the loss of a session counts if one end is over") {
  begin();
  REQUIRE(done(kA).ok());
  lose_pair(kA, kB);
  CHECK(count<MasterStep::SendAbort>() == 2);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a session may go once both ends are over") {
  begin();
  REQUIRE(done(kA).ok());
  REQUIRE(done(kB).ok());
  lose_pair(kA, kB);
  lose_pair(kB, kA);
  CHECK(actions.empty());
  REQUIRE(done(kC).ok());
  CHECK(answer().status.ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: the session with an old incarnation has no effect") {
  begin();
  step.on_pair_lost(kA, kB, Incarnation{1}, loss_of("a link"), at(1), actions);
  CHECK(actions.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: the time-out stops a step") {
  step = make({.deadline = at(500)});
  begin();
  CHECK(step.next() == at(500));
  step.on_time(at(499), actions);
  CHECK(actions.empty());
  step.on_time(at(500), actions);
  CHECK(count<MasterStep::SendAbort>() == 3);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK(answer().status.to_string().starts_with(
      "DeadlineExceeded: [run] the time of step 7 is up; a: "));
}

TEST_CASE_FIXTURE(Fixture, "smoke: the time-out does not replace a cause") {
  step = make({.deadline = at(500)});
  begin();
  fail(kA, 400);
  step.on_time(at(500), actions);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: after the grace the silent are evicted") {
  begin();
  fail(kA, 100);
  aborted(kA);
  CHECK(step.next() == at(1600));
  step.on_time(at(1599), actions);
  CHECK(count<MasterStep::Evict>() == 0);
  step.on_time(at(1600), actions);
  REQUIRE(count<MasterStep::Evict>() == 2);
  const auto& evict = std::get<MasterStep::Evict>(actions.back());
  CHECK(evict.task == kC);
  CHECK(evict.incarnation == incarnation_of(kC));
  CHECK(evict.reason.message() == "it did not abort step 7 within 1500 ms");
  // Once; the answer comes when the members are lost, not before.
  CHECK(step.next() == kNever);
  step.on_time(at(5000), actions);
  CHECK(count<MasterStep::Evict>() == 2);
  CHECK(count<MasterStep::Answer>() == 0);
  lose(kB);
  lose(kC);
  CHECK(answer().status.message() == "bad feed");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the grace begins with the abort") {
  step = make({.deadline = at(500), .grace = milliseconds(200)});
  begin();
  step.on_time(at(510), actions);
  CHECK(step.next() == at(710));
  step.on_time(at(710), actions);
  CHECK(count<MasterStep::Evict>() == 3);
}

TEST_CASE_FIXTURE(Fixture, "smoke: after the answer nothing has an effect") {
  begin();
  for (TaskIndex task : {kA, kB, kC}) REQUIRE(done(task).ok());
  actions.clear();
  fail(kA);
  lose(kB);
  lose_pair(kA, kB);
  step.on_stopped(script_error(), at(9), actions);
  step.on_time(at(99'999), actions);
  CHECK(actions.empty());
  CHECK(step.next() == kNever);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a failure after a commit tears") {
  begin();
  REQUIRE(done(kA, {Status(), false, true}).ok());
  fail(kB);
  aborted(kB);
  aborted(kC);
  CHECK(answer().tears);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a part that is aborted may have committed") {
  begin();
  fail(kA);
  aborted(kA);
  aborted(kB, true);
  aborted(kC);
  CHECK(answer().tears);
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a failure before all commits does not tear") {
  begin();
  fail(kA);
  for (TaskIndex task : {kA, kB, kC}) aborted(task);
  CHECK_FALSE(answer().tears);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a step that succeeds does not tear") {
  begin();
  for (TaskIndex task : {kA, kB, kC})
    REQUIRE(done(task, {Status(), false, true}).ok());
  CHECK_FALSE(answer().tears);
}

TEST_CASE_FIXTURE(Fixture, "smoke: what a lost worker has committed is gone") {
  begin();
  REQUIRE(done(kA, {Status(), false, true}).ok());
  lose(kA);
  aborted(kB);
  aborted(kC);
  CHECK_FALSE(answer().tears);
}

TEST_CASE("smoke: updates of one worker do not tear") {
  MasterStep step(StepId{7},
                  {{kA, incarnation_of(kA), "a", true},
                   {kB, incarnation_of(kB), "b", false}},
                  {}, {});
  MasterStep::Actions actions;
  REQUIRE(step.on_done(kA, {Status(), false, true}, at(1), actions).ok());
  REQUIRE(step.on_done(kB, {script_error(), true, false}, at(1), actions).ok());
  CHECK_FALSE(std::get<MasterStep::Answer>(actions.back()).tears);
}
