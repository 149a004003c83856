// Quiet parts and the decision that a step is deadlocked: Note [Deadlock].
#include "net/protocol/deadlock.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::net;
using std::chrono::milliseconds;
using Decision = DeadlockWatch::Decision;

namespace {

Time at(int ms) { return Time() + milliseconds(ms); }

DeadlockWatch::Report quiet(uint64_t sent, uint64_t received,
                            uint32_t round = 0) {
  return {round, true, {sent, received}};
}

DeadlockWatch::Report busy(uint32_t round = 0) { return {round, false, {}}; }

}  // namespace

TEST_CASE("smoke: a quiet that lasts 50 ms is reported once") {
  QuietPart part;
  CHECK(part.next() == kNever);
  part.on_quiet({1, 2}, at(10));
  CHECK(part.next() == at(60));
  CHECK_FALSE(part.on_time(at(59)));
  CHECK(part.on_time(at(60)));
  CHECK(part.is_quiet());
  CHECK(part.counts() == MessageCounts{1, 2});
  CHECK(part.next() == kNever);
  part.on_quiet({1, 2}, at(70));
  CHECK_FALSE(part.on_time(at(10'000)));
}

TEST_CASE("smoke: a short quiet is not reported") {
  QuietPart part;
  for (int ms = 0; ms < 1000; ms += 50) {
    part.on_quiet({uint64_t(ms), 0}, at(ms));
    CHECK_FALSE(part.on_time(at(ms + 49)));
    part.on_busy();
    CHECK(part.next() == kNever);
    CHECK_FALSE(part.is_quiet());
  }
}

TEST_CASE("smoke: a message that wakes nothing begins the quiet anew") {
  QuietPart part;
  part.on_quiet({0, 0}, at(0));
  part.on_quiet({0, 1}, at(40));
  CHECK(part.next() == at(90));
  CHECK(part.on_time(at(90)));
  // Also after a report, which does not hold any more.
  part.on_quiet({0, 2}, at(100));
  CHECK(part.next() == at(200));
  CHECK(part.on_time(at(200)));
  CHECK(part.counts() == MessageCounts{0, 2});
}

TEST_CASE("smoke: each report of a step waits twice as long, up to a bound") {
  QuietPart part;
  int ms = 0;
  uint64_t count = 0;
  for (int pause : {50, 100, 200, 400, 800, 1600, 1600, 1600}) {
    part.on_quiet({++count, 0}, at(ms));
    CHECK(part.next() == at(ms + pause));
    CHECK(part.on_time(at(ms + pause)));
    part.on_busy();
    ms += pause;
  }
}

TEST_CASE("smoke: a quiet with the old counts is reported after activity") {
  QuietPart part;
  part.on_quiet({1, 1}, at(0));
  CHECK(part.on_time(at(50)));
  part.on_busy();
  part.on_quiet({1, 1}, at(60));
  CHECK(part.next() == at(160));
}

TEST_CASE("smoke: a part that was asked has told its quiet") {
  QuietPart part;
  part.on_quiet({1, 1}, at(0));
  part.on_asked();
  CHECK(part.next() == kNever);
  part.on_quiet({1, 2}, at(10));
  CHECK(part.next() == at(60));
}

TEST_CASE("smoke: a part that was asked while busy reports its quiet later") {
  QuietPart part;
  part.on_asked();
  part.on_quiet({0, 0}, at(10));
  CHECK(part.next() == at(60));
}

TEST_CASE("smoke: a deadlock is two equal looks at all parts") {
  DeadlockWatch watch(2);
  CHECK(watch.on_report(0, quiet(3, 1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(1, 3)) == Decision::kAsk);
  CHECK(watch.round() == 1);
  CHECK(watch.on_report(0, quiet(3, 1, 1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(1, 3, 1)) == Decision::kDeadlock);
}

TEST_CASE(
    "smoke: a step that waits for other runs is stalled, not deadlocked") {
  DeadlockWatch watch(2);
  const auto waiting = [](uint32_t round) {
    auto report = quiet(1, 3, round);
    report.waits_for_runs = true;
    return report;
  };
  watch.on_report(0, quiet(3, 1));
  CHECK(watch.on_report(1, waiting(0)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(3, 1, 1)) == Decision::kNothing);
  CHECK_FALSE(watch.is_stalled());
  CHECK(watch.on_report(1, waiting(1)) == Decision::kStall);
  CHECK(watch.is_stalled());
  // It was served, and can go on no more than before.
  CHECK(watch.on_report(1, busy()) == Decision::kNothing);
  CHECK_FALSE(watch.is_stalled());
  CHECK(watch.on_report(1, quiet(1, 3)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(3, 1, 2)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(1, 3, 2)) == Decision::kDeadlock);
}

TEST_CASE("smoke: the end of a part ends a stall") {
  DeadlockWatch watch(2);
  DeadlockWatch::Report waiting = quiet(0, 0);
  waiting.waits_for_runs = true;
  watch.on_report(0, quiet(0, 0));
  CHECK(watch.on_report(1, waiting) == Decision::kAsk);
  waiting.round = 1;
  watch.on_report(0, quiet(0, 0, 1));
  CHECK(watch.on_report(1, waiting) == Decision::kStall);
  watch.on_over(1, {0, 0});
  CHECK_FALSE(watch.is_stalled());
}

TEST_CASE("smoke: a message under way is no deadlock") {
  DeadlockWatch watch(2);
  CHECK(watch.on_report(0, quiet(2, 0)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 2)) == Decision::kAsk);
}

TEST_CASE("smoke: a part that has not reported may be busy") {
  DeadlockWatch watch(3);
  CHECK(watch.on_report(0, quiet(0, 0)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 0)) == Decision::kNothing);
  CHECK(watch.on_report(0, quiet(0, 0)) == Decision::kNothing);
}

TEST_CASE("smoke: a count that changes between the looks is no deadlock") {
  DeadlockWatch watch(2);
  watch.on_report(0, quiet(1, 0));
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(2, 1, 1)) == Decision::kNothing);
  // The second looks are the first ones of another round.
  CHECK(watch.on_report(1, quiet(1, 2, 1)) == Decision::kAsk);
  CHECK(watch.round() == 2);
  CHECK(watch.on_report(0, quiet(2, 1, 2)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(1, 2, 2)) == Decision::kDeadlock);
}

TEST_CASE("smoke: activity between the looks is no deadlock") {
  DeadlockWatch watch(2);
  watch.on_report(0, quiet(1, 0));
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kAsk);
  CHECK(watch.on_report(0, busy(1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 1, 1)) == Decision::kNothing);
  // It says when it is quiet again.
  CHECK(watch.on_report(0, quiet(1, 0)) == Decision::kAsk);
}

TEST_CASE("smoke: the answers of an old round do not count") {
  DeadlockWatch watch(2);
  watch.on_report(0, quiet(1, 0));
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kAsk);
  watch.on_report(0, busy(1));
  watch.on_report(1, quiet(0, 1, 1));
  CHECK(watch.on_report(0, quiet(1, 0)) == Decision::kAsk);
  REQUIRE(watch.round() == 2);
  CHECK(watch.on_report(0, quiet(1, 0, 2)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 1, 1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 1, 2)) == Decision::kDeadlock);
}

TEST_CASE("smoke: a report during a round does not answer it") {
  DeadlockWatch watch(2);
  watch.on_report(0, quiet(1, 0));
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(1, 0)) == Decision::kNothing);
  CHECK(watch.on_report(0, quiet(1, 0, 1)) == Decision::kNothing);
  CHECK(watch.on_report(1, quiet(0, 1, 1)) == Decision::kDeadlock);
}

TEST_CASE("smoke: a part that is over is quiet, by its last counts") {
  DeadlockWatch watch(2);
  CHECK(watch.on_report(0, quiet(0, 5)) == Decision::kNothing);
  CHECK(watch.on_over(1, {4, 0}) == Decision::kNothing);
  CHECK(watch.on_report(0, quiet(0, 4)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(0, 4, 1)) == Decision::kDeadlock);
}

TEST_CASE("smoke: the end of a part during a round is no deadlock yet") {
  DeadlockWatch watch(2);
  watch.on_report(0, quiet(1, 0));
  CHECK(watch.on_report(1, quiet(0, 1)) == Decision::kAsk);
  CHECK(watch.on_report(0, quiet(1, 0, 1)) == Decision::kNothing);
  // All have answered or ended: the next round asks those that are left.
  CHECK(watch.on_over(1, {0, 1}) == Decision::kAsk);
  CHECK(watch.round() == 2);
  CHECK(watch.on_report(0, quiet(1, 0, 2)) == Decision::kDeadlock);
}

TEST_CASE("smoke: a step whose parts are all over is not deadlocked") {
  DeadlockWatch watch(2);
  CHECK(watch.on_over(0, {1, 0}) == Decision::kNothing);
  CHECK(watch.on_over(1, {0, 1}) == Decision::kNothing);
  CHECK(watch.on_over(1, {0, 1}) == Decision::kNothing);
  CHECK(watch.on_report(0, quiet(1, 0)) == Decision::kNothing);
}
