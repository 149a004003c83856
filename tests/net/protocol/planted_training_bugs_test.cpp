// Plausible slips in how trainings are saved and go on: the simulation finds
// each. docs/survival.md has the table.
#include <doctest/doctest.h>

#include <string>

#include "tests/net/protocol/training.h"

using namespace tagflow::net::simulated;

namespace {

void check_found(Planted planted, const std::string& name,
                 uint64_t most = 2000) {
  for (uint64_t seed = 1; seed <= most; ++seed) {
    const std::string violation =
        run_training_schedule(seed, planted).violation;
    if (violation.empty()) continue;
    MESSAGE(name << " is found by schedule " << seed << ": " << violation);
    return;
  }
  FAIL_CHECK(name << " is not found");
}

}  // namespace

#define CHECK_FOUND(name, ...) \
  check_found(Planted::name, #name __VA_OPT__(, ) __VA_ARGS__)

TEST_CASE("smoke: bugs in the files of a checkpoint are found") {
  CHECK_FOUND(kFilesUnsynced);
  CHECK_FOUND(kFolderUnsynced);
  CHECK_FOUND(kIndexFirst);
  CHECK_FOUND(kRemovesFirst);
  CHECK_FOUND(kNoLock);
  CHECK_FOUND(kBelievesNames);
}

TEST_CASE("smoke: bugs in what a checkpoint has are found") {
  CHECK_FOUND(kSavesBesideSteps);
  CHECK_FOUND(kSavesTorn);
  CHECK_FOUND(kCountsKept);
  CHECK_FOUND(kQueuesKept);
  CHECK_FOUND(kSeedDrawnAgain);
}

TEST_CASE("smoke: bugs in restarts are found") {
  CHECK_FOUND(kStepsSurvive);
  CHECK_FOUND(kRestoresLostAlone);
  CHECK_FOUND(kStepRepeated);
  CHECK_FOUND(kStepLeftOut);
  CHECK_FOUND(kSaveFailsRun);
  CHECK_FOUND(kGoesOnTooEarly);
  CHECK_FOUND(kSecondMaster);
  CHECK_FOUND(kWaitsForEver);
  CHECK_FOUND(kWriterLeft);
  CHECK_FOUND(kSilenceIsNoLoss);
}
