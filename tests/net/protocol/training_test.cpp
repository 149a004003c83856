// Random schedules of trainings: what training.h checks.
// TAGFLOW_SCHEDULES="COUNT FIRST" runs so many, from that seed.
#include "tests/net/protocol/training.h"

#include <doctest/doctest.h>

#include "tests/net/protocol/schedules.h"

using namespace tagflow::net::simulated;

TEST_CASE("smoke: a seed decides all of a training's schedule") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const TrainingOutcome first = run_training_schedule(seed),
                          second = run_training_schedule(seed);
    CHECK(first.num_events == second.num_events);
    CHECK(first.num_steps == second.num_steps);
    CHECK(first.num_restored == second.num_restored);
  }
}

TEST_CASE("smoke: trainings survive what happens in random schedules") {
  const Schedules schedules(2000);
  TrainingOutcome sum;
  for (uint64_t seed = schedules.first;
       seed < schedules.first + schedules.count; ++seed) {
    CAPTURE(seed);
    const TrainingOutcome outcome = run_training_schedule(seed);
    REQUIRE(outcome.violation == "");
    sum.num_steps += outcome.num_steps;
    sum.num_losses += outcome.num_losses;
    sum.num_masters += outcome.num_masters;
    sum.num_restored += outcome.num_restored;
    sum.num_saved += outcome.num_saved;
    sum.num_failed_saves += outcome.num_failed_saves;
    sum.num_power_losses += outcome.num_power_losses;
    sum.num_damaged += outcome.num_damaged;
    for (size_t i = 0; i < sum.num_killed.size(); ++i)
      sum.num_killed[i] += outcome.num_killed[i];
  }
  MESSAGE(schedules.count << " schedules, steps that succeeded: "
                          << sum.num_steps << ", sessions that lost a worker: "
                          << sum.num_losses << ", masters: " << sum.num_masters
                          << ", checkpoints restored: " << sum.num_restored
                          << ", saved: " << sum.num_saved
                          << ", not saved: " << sum.num_failed_saves
                          << ", damaged: " << sum.num_damaged
                          << ", losses of power: " << sum.num_power_losses);
  // What never happens is not checked.
  if (schedules.count < 1000) return;
  CHECK(sum.num_losses > 0);
  CHECK(uint64_t(sum.num_masters) > 2 * schedules.count);
  CHECK(sum.num_restored > 0);
  CHECK(sum.num_failed_saves > 0);
  CHECK(sum.num_power_losses > 0);
  CHECK(sum.num_damaged > 0);
  for (const int num_killed : sum.num_killed) CHECK(num_killed > 0);
}
