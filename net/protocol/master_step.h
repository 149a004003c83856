// MasterStep: one step on several workers, as its master decides it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/status.h"
#include "net/protocol/ids.h"

namespace tagflow::net {

// Note [End of a step]
// The *part* of a step at a worker is over when all root frames of the worker's
// partitions have ended: when all nodes of their root iterations have fired or
// died, and nothing that they started is outstanding. The worker then says
// Done, once per step. The step is over when all parts have said so.
//
// Nothing is counted, and nothing is in flight then: every Send has exactly one
// Recv, every Recv is a node of some frame, and its root iteration awaits the
// end of that frame. So if all parts are over, all tokens that were sent have
// been received. One part that is over proves less: what it has sent may still
// be in its links. So until all parts are over, the loss of a worker fails the
// step, whether or not the worker has said Done; and so does the loss of the
// session between two workers, unless both have.
//
// The loss of a session must be told even by a worker that has no part running.
// Suppose that A sends a token to B, says Done, and the session is lost before
// B has the token, or before B has begun the step. Nobody whose part runs would
// notice: A is over, and B waits on a new session for what went down with the
// old one. So the workers at both ends tell each loss to the master, who knows
// the steps that are not over.
//
// A part that fails says so at once, by an Abort to the master. Its Done comes
// when it is at rest: when the gate of its commits has closed and drained.
// These are two messages, since the master must spread the abort at once, but
// must not answer before the last commit.
//
// Note [First cause]
// The answer of a step that fails is its cause. Errors are ordered by what can
// cause what:
//    kError        of a part by itself, the time-out, the caller, a deadlock
//    kLoss         of a worker or a session: perhaps since a part has failed,
//                  whose Abort is still under way on a slower link
//    kConsequence  what a part says that was told to abort
// An error of a lower line never replaces one of a higher line; of two in the
// same line the first wins. A kConsequence alone never becomes the answer:
// there is no Abort without a cause.
//
// Note [Late commits]
// After the answer no update of the step becomes visible. Parts that have said
// Done are at rest. The master waits for the others; a worker that does not say
// Done within the grace is evicted (Note [Membership]), so what it commits
// later goes down with its incarnation. To answer without it and to keep it as
// a member would be wrong: a worker that was stopped commits first when it
// wakes, and reads the Abort afterwards.
//
// Life cycle: made; begin(); running; perhaps aborting; answered, once. Events
// after the answer have no effect. One per step. Thread-safe: no.
class MasterStep {
 public:
  struct Part {
    TaskIndex task{};
    Incarnation incarnation{};
    std::string name;      // "/job:worker/task:1"
    bool updates = false;  // state that outlives the step
  };
  // Two tasks whose parts exchange tokens.
  using Pair = std::pair<TaskIndex, TaskIndex>;

  struct Limits {
    Time deadline = kNever;
    // Long enough for a worker that lives, and no longer than the silence that
    // is a loss.
    Duration grace = std::chrono::milliseconds(1500);
  };

  // What a worker says when its part is at rest.
  struct Done {
    // If it is not the cause, its message says what the part waited for when it
    // was told to abort; it may be empty.
    Status status;
    // The error was there before the part was told to abort.
    bool is_cause = false;
    // Some update has passed the gate of the part's commits.
    bool has_committed = false;
  };

  struct SendRun {
    TaskIndex task{};
  };
  struct SendAbort {
    TaskIndex task{};
    Status cause;
  };
  // The worker has not said Done within the grace: Members::on_lost() with this
  // reason.
  struct Evict {
    TaskIndex task{};
    Incarnation incarnation{};
    Status reason;
  };
  struct Answer {
    Status status;
    // Some workers may have updated, others not: Note [Torn state].
    bool tears = false;
  };
  using Action = std::variant<SendRun, SendAbort, Evict, Answer>;
  using Actions = boost::container::small_vector<Action, 8>;

  // REQUIRES: parts are not empty, and of different tasks; pairs are of them
  MasterStep(StepId id, std::vector<Part> parts, std::vector<Pair> pairs,
             Limits limits);

  void begin(Actions& actions);

  // A worker's Abort: its part has failed, and is not at rest yet.
  void on_failed(TaskIndex task, const Status& status, Time now,
                 Actions& actions);
  // A worker's Done. A second one of the same worker is an error, which ends
  // the worker's link.
  Status on_done(TaskIndex task, const Done& done, Time now, Actions& actions);
  // A member is lost. No effect if its incarnation has no part.
  void on_lost(TaskIndex task, Incarnation incarnation, const Status& reason,
               Time now, Actions& actions);
  // A worker says that its session with an incarnation of another is lost. No
  // effect if that incarnation has no part.
  void on_pair_lost(TaskIndex task, TaskIndex peer, Incarnation incarnation,
                    const Status& reason, Time now, Actions& actions);
  // The caller cancels the step, its time is up, or it is deadlocked. If this
  // is the cause, the answer also says what its parts have waited for.
  void on_stopped(const Status& cause, Time now, Actions& actions);

  void on_time(Time now, Actions& actions);
  // When on_time() wants to be called; kNever if it need not be.
  Time next() const;

  // The names of the parts that are not over.
  std::vector<std::string> running() const;

  StepId id() const { return id_; }
  bool is_answered() const { return phase_ == Phase::kAnswered; }
  bool is_running() const { return phase_ == Phase::kRunning; }

 private:
  enum class Phase : uint8_t { kRunning, kAborting, kAnswered };
  enum class Rank : uint8_t { kConsequence, kLoss, kError };
  struct State {
    Part part;
    bool is_done = false;
    bool is_lost = false;
    bool has_committed = false;
    std::string waits;  // at the abort

    bool is_over() const { return is_done || is_lost; }
  };

  State* find(TaskIndex task);
  void fail(Rank rank, const Status& cause, Time now, Actions& actions);
  void answer_if_over(Actions& actions);
  bool tears() const;
  Status answer_status() const;

  StepId id_;
  std::vector<State> parts_;
  std::vector<Pair> pairs_;
  Limits limits_;
  Phase phase_ = Phase::kRunning;
  Rank rank_ = Rank::kConsequence;
  Status cause_;
  bool is_stopped_ = false;  // by the cause
  Time patience_ = kNever;   // the end of the grace
};

}  // namespace tagflow::net
