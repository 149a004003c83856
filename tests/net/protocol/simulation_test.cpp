// Random schedules of the cluster's protocols: what simulation.h checks.
// TAGFLOW_SCHEDULES="COUNT FIRST" runs so many, from that seed.
#include "tests/net/protocol/simulation.h"

#include <doctest/doctest.h>

#include "tests/net/protocol/schedules.h"

using namespace tagflow::net::simulated;

TEST_CASE("smoke: a seed decides all of a schedule") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Outcome first = run_schedule(seed), second = run_schedule(seed);
    CHECK(first.num_events == second.num_events);
    CHECK(first.num_succeeded == second.num_succeeded);
    CHECK(first.num_unavailable == second.num_unavailable);
  }
}

TEST_CASE("smoke: the protocols keep what they promise in random schedules") {
  const Schedules schedules(1500);
  Outcome sum;
  for (uint64_t seed = schedules.first;
       seed < schedules.first + schedules.count; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = run_schedule(seed);
    REQUIRE(outcome.violation == "");
    sum.num_succeeded += outcome.num_succeeded;
    sum.num_failed += outcome.num_failed;
    sum.num_deadlocks += outcome.num_deadlocks;
    sum.num_unavailable += outcome.num_unavailable;
    sum.num_torn += outcome.num_torn;
    sum.num_stopped += outcome.num_stopped;
  }
  MESSAGE(schedules.count << " schedules, steps that succeeded: "
                          << sum.num_succeeded << ", failed: " << sum.num_failed
                          << ", deadlocked: " << sum.num_deadlocks
                          << ", lost a worker: " << sum.num_unavailable
                          << ", tore: " << sum.num_torn
                          << ", were stopped: " << sum.num_stopped);
  // What never happens is not checked.
  if (schedules.count < 1000) return;
  CHECK(sum.num_succeeded > 0);
  CHECK(sum.num_failed > 0);
  CHECK(sum.num_deadlocks > 0);
  CHECK(sum.num_unavailable > 0);
  CHECK(sum.num_torn > 0);
  CHECK(sum.num_stopped > 0);
}
