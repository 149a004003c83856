// Plausible slips in the protocols: the simulation finds each.
#include <doctest/doctest.h>

#include <string>

#include "tests/net/protocol/simulation.h"

using namespace tagflow::net::simulated;

namespace {

// The seed of the first of `most` schedules that finds the bug; 0 if none does.
uint64_t found_at(Planted planted, uint64_t most) {
  for (uint64_t seed = 1; seed <= most; ++seed)
    if (!run_schedule(seed, planted).violation.empty()) return seed;
  return 0;
}

void check_found(Planted planted, const std::string& name,
                 uint64_t most = 500) {
  const uint64_t seed = found_at(planted, most);
  MESSAGE(name << " is found by schedule " << seed);
  CHECK(seed > 0);
}

}  // namespace

#define CHECK_FOUND(name, ...) \
  check_found(Planted::name, #name __VA_OPT__(, ) __VA_ARGS__)

TEST_CASE("smoke: bugs in who is a member are found") {
  CHECK_FOUND(kSameIncarnation);
  CHECK_FOUND(kStepsSurvive);
  CHECK_FOUND(kSilenceIsNoLoss);
}

TEST_CASE("smoke: bugs in how a worker leaves its master are found") {
  CHECK_FOUND(kLetsGoAtOnce);
  CHECK_FOUND(kLeavesByItself, 3000);
}

TEST_CASE("smoke: bugs in the end of a step are found") {
  CHECK_FOUND(kDoneBeforeRest);
  CHECK_FOUND(kLossAfterDone);
  CHECK_FOUND(kPairLossByParts, 3000);
  CHECK_FOUND(kConsequenceWins);
  CHECK_FOUND(kNoEviction, 1500);
  CHECK_FOUND(kCommitsUntold);
  CHECK_FOUND(kAbortNotSpread);
}

TEST_CASE("smoke: bugs in early and dead tokens are found") {
  CHECK_FOUND(kEarlyDropped);
  CHECK_FOUND(kEarlyIfLast);
  CHECK_FOUND(kDoneTwice, 1500);
}

TEST_CASE("smoke: bugs in the window are found") {
  CHECK_FOUND(kCreditLostAtAbort);
  CHECK_FOUND(kCreditLostIfDead);
  CHECK_FOUND(kCreditTwice);
  CHECK_FOUND(kNoWindow);
  CHECK_FOUND(kCreditOfOldSession);
  CHECK_FOUND(kPullNeedsWindow);
}

TEST_CASE("smoke: bugs in the search for deadlocks are found") {
  CHECK_FOUND(kNoConfirmation);
  CHECK_FOUND(kObjectsUncounted);
  CHECK_FOUND(kQueueIsQuiet);
  CHECK_FOUND(kEarlyUncounted);
  CHECK_FOUND(kOverUncounted);
}
