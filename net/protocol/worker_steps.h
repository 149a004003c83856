// WorkerSteps: the steps of a master at one worker.
#pragma once

#include <boost/container/small_vector.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "graph/status.h"
#include "net/protocol/ids.h"
#include "net/protocol/master_step.h"

namespace tagflow::net {

// Note [Early and dead]
// Run and Abort come from the master on one ordered link. Tokens come from
// peers on other links, so they may come before the Run of their step or after
// its end. The step's id alone says which: the master's ids grow on its link,
// so a step above the last Run has not begun here, and one at or below it has;
// then it is active, or it has ended and is dead.
//
//    early   above the last Run   its tokens are kept
//    active  has begun, runs      its tokens are delivered
//    dead    has ended or fails   its tokens are dropped, their credit returns;
//                                 its pulls find nothing
//
// What is kept is bounded by the window, since it has not been consumed. It is
// taken in the end: a peer sends tokens of a step only after its own Run, and
// the master sends the Runs of a step together, so the Run comes, or the master
// is lost and everything is cleared. No token of a step that succeeds is
// dropped: a part that is over has received all its tokens.
//
// A failing part takes no more tokens, but still has to come to rest: see
// Note [End of a step].
//
//    on_run              on_local_error, on_abort           on_local_over
//   -------> running ---------------------------> failing ---------------->
//   dead
//               |                                               Done ^
//               +----------------------------------------------------+
//                 on_local_over: succeeded, or failed and at rest at once
//
// Invariants:
//   1. Each Run is answered by exactly one Done, unless the master is lost;
//   none
//      before the part is at rest.
//   2. Transfers of a step are dropped (Drop) exactly once, when it fails; if
//   it
//      succeeds, there are none.
//
// One per incarnation of a worker. Thread-safe: no.
class WorkerSteps {
 public:
  enum class Fate : uint8_t { kKeep, kDeliver, kDrop };

  // Start the local step, and deliver what was kept for it.
  struct Start {
    StepId step{};
  };
  // Fail the local step by this error: on_local_over() is to come.
  struct Fail {
    StepId step{};
    Status cause;
  };
  // Drop all its transfers: kept, received, announced. Credit returns.
  struct Drop {
    StepId step{};
  };
  // An Abort to the master: the part has failed by itself.
  struct TellFailed {
    StepId step{};
    Status status;
  };
  // A Done to the master.
  struct TellDone {
    StepId step{};
    MasterStep::Done done;
  };
  using Action = std::variant<Start, Fail, Drop, TellFailed, TellDone>;
  using Actions = boost::container::small_vector<Action, 4>;

  // From the master. An error means that it does not keep the protocol: its
  // link ends.
  Status on_run(StepId step, Actions& actions);
  // No effect on a step that is dead. A step above the last Run is closed: the
  // Done is said, and its Run must not come any more.
  void on_abort(StepId step, const Status& cause, Actions& actions);

  // The local step has its first error, and is not at rest yet. No effect if it
  // was told to abort.
  void on_local_error(StepId step, const Status& status, Actions& actions);
  // The local step is at rest. `has_committed`: some update has passed its
  // gate. No effect if the step is not active, or failing.
  void on_local_over(StepId step, const Status& status, bool has_committed,
                     Actions& actions);

  // What is to become of a token or an announcement of the step.
  Fate fate_of(StepId step) const;

  StepId last_run() const { return last_run_; }
  size_t num_active() const { return active_.size(); }

 private:
  enum class Phase : uint8_t { kRunning, kFailedItself, kAborted };
  struct Active {
    StepId step{};
    Phase phase = Phase::kRunning;
  };
  Active* find(StepId step);

  StepId last_run_ = StepId::kNone;
  // A few at a time.
  boost::container::small_vector<Active, 8> active_;
};

}  // namespace tagflow::net
