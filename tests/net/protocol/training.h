// A training in the simulation: the real loop and the real order of a save, on
// simulated workers, with a simulated disk.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/net/protocol/sim_faults.h"

namespace tagflow::net::simulated {

// What a training does: faults wait for it.
enum class Moment : uint8_t {
  kConnect,
  kRestore,  // its files are read
  kLoad,     // its values are on their way to the workers
  kStep,
  kSnapshot,
  kWrite,    // with steps beside it, as all that follow
  kPublish,  // a file of a checkpoint gets its name
  kList,     // the list of checkpoints gets its name
  kCleanup,  // a file of a checkpoint is removed
  kLast,
};

// What a schedule has shown.
struct TrainingOutcome {
  // The first property that does not hold; empty if all do.
  std::string violation;
  int num_steps = 0;         // that succeeded, with those that ran again
  int num_losses = 0;        // of workers, which ended a session
  int num_masters = 0;       // processes
  int num_restored = 0;      // checkpoints
  int num_saved = 0;         // checkpoints
  int num_failed_saves = 0;  // which did not end their run
  int num_power_losses = 0;  // of the disk's machine
  int num_damaged = 0;       // checkpoints, on the disk
  // Masters that were killed, by what the training did.
  std::array<int, size_t(Moment::kLast)> num_killed{};
  uint64_t num_events = 0;
};

// Trains on one to four workers, while workers crash, stop and wake; links
// break or go silent; the disk is slow, full, or fails; the master is killed,
// stopped, cut off, or loses its power, in a phase that is drawn; and another
// one takes over, perhaps while the last one lives. Checks:
//   - the final variables, rows and random numbers, and what each step returns,
//     are those of a training that nobody disturbs;
//   - no step is applied twice, or left out;
//   - a restore sets all workers of the session, and no worker has anything
//     else;
//   - what is restored is what was at one moment at all workers: variables,
//     counts, queues;
//   - an index has its name only after all of its data is on the disk;
//   - the checkpoint that a save has written is there, or a later one, whatever
//     happens, and is only removed if a later one is complete;
//   - a save that fails does not end the run;
//   - a worker serves one master at a time; one process writes to the folder;
//   - the training ends, within a bound after the last fault; then the folder
//     has its last checkpoint, and no more than it is to keep.
TrainingOutcome run_training_schedule(uint64_t seed,
                                      Planted planted = Planted::kNone);

}  // namespace tagflow::net::simulated
