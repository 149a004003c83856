// Simulation: random steps of a master on random workers, with random faults,
// in one thread and in virtual time. A seed decides all of it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/net/protocol/sim_faults.h"

namespace tagflow::net::simulated {

// What a schedule has shown.
struct Outcome {
  // The first property that does not hold; empty if all do.
  std::string violation;
  int num_succeeded = 0;
  int num_failed = 0;  // by their scripts
  int num_deadlocks = 0;
  int num_unavailable = 0;
  int num_torn = 0;
  int num_stopped = 0;  // by the client or its deadline
  uint64_t num_events = 0;
};

// Runs a few steps on two to five workers, while processes crash, stop and
// wake, leave by a Drain and come back, hosts lose their power, links break or
// go silent, and checks:
//   - each step is answered exactly once, within a bound;
//   - the answer is what its script demands: the value, its error, Deadlock if
//     and only if it is stuck; or the client's own stop; or Unavailable, which
//     names a worker to which something has happened during the step;
//   - no update is made twice, all updates of a step that succeeds are made,
//     and none after the answer by an incarnation that stays a member;
//   - a step that fails without tearing has updated no worker that stays;
//   - no end of a link sees the protocol broken: windows, keys, credit;
//   - in the end nothing is left of the steps, all credit has returned, and all
//     workers are members.
Outcome run_schedule(uint64_t seed, Planted planted = Planted::kNone);

}  // namespace tagflow::net::simulated
