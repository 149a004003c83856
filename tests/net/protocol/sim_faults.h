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
  // The files of a checkpoint.
  kFilesUnsynced,   // data gets its name before it is on the disk
  kFolderUnsynced,  // names of files are not synced
  kIndexFirst,      // the index gets its name before its data
  kRemovesFirst,    // old checkpoints go before the new one is complete
  kNoLock,          // the lock of the folder excludes nobody
  kBelievesNames,   // a restore takes the last name, and checks nothing
  // What a checkpoint has.
  kSavesBesideSteps,  // a snapshot does not hold steps up
  kSavesTorn,         // ... and is taken though a worker is lost
  kCountsKept,        // counts of random ops are not restored
  kQueuesKept,        // contents of queues are not restored
  kSeedDrawnAgain,    // each incarnation of the master draws a seed
  // Restarts.
  kRestoresLostAlone,  // the workers that are left keep their state
  kStepRepeated,       // a step that lost a worker is run again at once
  kStepLeftOut,        // ... or counts as done
  kSaveFailsRun,       // a save that fails ends the run
  kGoesOnTooEarly,     // the loop begins again with the restored step
  kSecondMaster,       // a worker hears the master that it has left
  kWaitsForEver,       // a new session waits until all workers are there
  kWriterLeft,         // a save goes on when its session has ended
};

}  // namespace tagflow::net::simulated
