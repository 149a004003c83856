// The bugs that a test can plant into the simulated hosts.
#pragma once

#include <cstdint>

namespace tagflow::net::simulated {

// Each is a plausible slip in the protocols or in what performs their actions.
// The simulation must find each; see planted_bugs_test.cpp.
enum class Planted : uint8_t {
  kNone,
  // Members.
  kSameIncarnation,  // a worker that lost its master keeps its incarnation
  kStepsSurvive,     // ... or keeps its steps and state under a new one
  kSilenceIsNoLoss,  // the master waits for a silent worker for ever
  kLetsGoAtOnce,     // the master lets a worker go whose steps are not over
  kLeavesByItself,   // a worker without a part leaves when it has asked
  // The step at its master.
  kDoneBeforeRest,   // Done is said before the gate of the commits drained
  kLossAfterDone,    // the loss of a worker that has said Done is ignored
  kPairLossByParts,  // the loss of a session is told by running parts only
  kConsequenceWins,  // what an Abort has caused counts as a cause
  kNoEviction,       // the grace ends, the silent worker stays a member
  kCommitsUntold,    // Done does not say that updates were committed
  kAbortNotSpread,   // the master waits for the other parts of a failed step
  // The part at a worker.
  kEarlyDropped,  // tokens before their Run are dropped
  kEarlyIfLast,   // a dead step is early if it is the last Run: < for <=
  kDoneTwice,     // a part that failed by itself says Done for the Abort
  // The window.
  kCreditLostAtAbort,   // credit of dropped tokens does not return
  kCreditLostIfDead,    // credit of tokens of dead steps does not return
  kCreditTwice,         // credit of a kept token returns at arrival, too
  kNoWindow,            // the sender sends all small tokens inline
  kCreditOfOldSession,  // credit returns on the next session
  kPullNeedsWindow,     // what was pulled is sent only if the window has room
  // Deadlock.
  kNoConfirmation,    // the first looks are believed
  kObjectsUncounted,  // what answers a pull is not counted
  kQueueIsQuiet,      // a part that waits for a queue says that it is quiet
  kEarlyUncounted,    // tokens that were kept are not counted
  kOverUncounted,     // the counts of parts that are over are left out
};

}  // namespace tagflow::net::simulated
