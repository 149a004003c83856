// Step: one run of a signature, from its feeds to its result.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <caf/resumable.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/options.h"
#include "actors/runtime/scheduler.h"
#include "actors/runtime/timer.h"
#include "devices/kernel.h"
#include "devices/state/run_counts.h"
#include "devices/state/state_lock.h"
#include "graph/tensor.h"

namespace tagflow::actors {

class Hold;  // actors/runtime/hold.h

// Note [Life of a step]
// A step is *active* while some actor, kernel or device of the engine works for
// it: while it has units of activity (Note [Activity] in runner.h). It *waits*
// while it has no unit, but an asynchronous kernel has not answered, since it
// waits for a queue, a timer or a thread; or while partitions in other
// processes may send to it (actors/runtime/peer_wait.h). Waits are counted
// beside the units, in the same word, and have names, such as those of the
// nodes whose kernels have not answered. The step is *over* when it has neither
// units nor waits. Then the word is closed, and no unit can be added any more.
//
//              begin_wait, last unit dropped
//            +-------------------------------> waiting
//   active --+                                    |
//      ^     +--> over: no unit, no wait          | end_wait: a wait becomes a
//      |                                          v unit, in one step
//      +------------------------------------------+
//
// A step that is over without its result could make no progress: this is a
// deadlock, and is reported at once. A step that waits goes on waiting until
// the wait ends, the time is up, or it is cancelled. Steps that wait only for
// one another are stalled; only the client that submits runs can decide that:
// Session::stalled().
//
// An error, a time-out, the caller, or the end of the session can cancel a
// step. A cancellation sets the flag that every handler checks, and calls the
// hooks of all waits (devices/cancellation.h), without the step's lock, on the
// cancelling thread. Each hook answers its wait, and so the step becomes over.
// A time-out and the caller *stop* a step: its answer is given when it is at
// rest or after a grace period, and then says how far the run had come.
//
// Changes of state that outlives the step pass its gate
// (devices/commit_gate.h), which the answer closes.
//
// Invariants:
//   1. The first error wins; it sets cancelled(), after which no batch of the
//      step has any effect.
//   2. The answer is given exactly once, after the last commit.
//   3. on_quiet is called exactly once, when nothing of the step runs or waits.
//      Proof: the word changes by atomic operations only. The compare-exchange
//      that takes the last unit closes it if there is no wait. A unit is added
//      by an owner of a unit, by try_enter(), which fails once the word is
//      closed, or in exchange for a wait. So no unit can be added afterwards.
//   4. An owner of a unit or a wait may use the step; the one that returns the
//      last unit does not access the step afterwards.

// The value of one fetch. Written once, by the iteration of the root frame that
// produces it.
struct FetchSlot {
  enum State : uint8_t { kMissing, kLive, kDead };
  Tensor value;
  State state = kMissing;
};

// A wait of a step, while it lasts.
struct StepWait
    : boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
  virtual ~StepWait() = default;
  // What waits: 'QueueDequeueV2 "take"'.
  virtual std::string name() const = 0;
  // 'queue "q" has 0 of 10 elements'; empty if nobody says. REQUIRES: the wait
  // has not ended.
  virtual std::string reason() const { return {}; }
  // Whether only another run on the same state can end it. REQUIRES: the same
  virtual bool is_for_state() const {
    return what == devices::WaitsFor::kSharedState;
  }

  devices::WaitsFor what = devices::WaitsFor::kOutside;
  // It is a part's wait for what its peers send: actors/runtime/peer_wait.h.
  bool is_for_peers = false;
  // It is that of a Hold.
  bool is_hold = false;
  // The reason of the wait at the time when the step was stopped, if it was.
  std::string at_stop;
};

// That of an asynchronous kernel; part of its request.
struct KernelWait final : StepWait {
  std::string name() const override;
  std::string reason() const override;

  const graph::Node* node = nullptr;
  // The kernel and its context, for more details. The context lives until the
  // wait ends.
  const devices::AsyncKernel* kernel = nullptr;
  const devices::KernelContext* context = nullptr;
};

// Life cycle: created by the session; active or waiting; over; its actors are
// returned; answered, with the result or the first error. If a time-out or the
// caller stops the step, it is answered after its grace at the latest: a kernel
// that cannot be interrupted may outlive the answer.
class Step : public std::enable_shared_from_this<Step>,
             public boost::intrusive::list_base_hook<
                 boost::intrusive::link_mode<boost::intrusive::safe_link>> {
 public:
  using Answer = Result<std::vector<Tensor>>;
  // How long a step that is stopped may take to come to rest, so that its
  // answer can say how far the run had come.
  static constexpr std::chrono::milliseconds kGrace{20};
  // The same for a step whose parts are in other processes.
  static constexpr std::chrono::milliseconds kRemoteGrace{200};

  Step(uint64_t id, size_t fetches);
  ~Step();

  // Kept until the end of the step, such as its session. First member:
  // destroyed last.
  std::shared_ptr<void> owner;
  // The executable that runs it, from its start on.
  std::shared_ptr<void> executable;
  bool counts = false;  // the answer comes with stats
  devices::StepInfo info;
  std::optional<devices::NumberedRun> random;  // set before the step starts
  bool urgent = false;  // goes before others if workers are few
  Observer* observer = nullptr;
  Trace* trace = nullptr;
  // By which others look at it; null: nobody can. Set before the step starts.
  std::shared_ptr<Hold> hold;
  std::vector<FetchSlot> fetches;
  // Zero: none. Set before the step starts.
  std::chrono::steady_clock::time_point deadline;
  std::chrono::nanoseconds timeout{0};
  // Atomic, since a clock may watch the step before it starts.
  std::atomic<std::chrono::milliseconds> grace{kGrace};

  // Poisons the step, and cancels all waits; later errors are dropped.
  // Thread-safe.
  void fail(Status status);
  // As fail(), for the current exception. REQUIRES: called in a catch block.
  // Thread-safe.
  void fault() noexcept;
  // Whether an exception was thrown: the step's actors may be in any state.
  bool faulted() const { return faulted_.load(std::memory_order_relaxed); }
  // Reads the flag that fail() sets. Thread-safe.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Whether it is cancelled, or held: Note [Holds] in hold.h. Thread-safe.
  bool interrupted() const {
    return interrupts_.load(std::memory_order_acquire) != 0;
  }
  // Whether it is cancelled, or everything of it is held. Thread-safe.
  bool must_rest() const {
    return (interrupts_.load(std::memory_order_relaxed) &
            (kCancelled | kFrozen)) != 0;
  }
  // Sets whether it is held, and whether everything is. REQUIRES: called by the
  // hold, one call at a time
  void set_held(bool is_held, bool is_frozen) {
    const auto bits =
        uint8_t((is_held ? kHeld : 0) | (is_frozen ? kFrozen : 0));
    interrupts_.fetch_or(bits);
    interrupts_.fetch_and(uint8_t(bits | kCancelled));
  }
  // The first error, or OK. Thread-safe.
  Status error() const;

  // Units of activity. add_activity() REQUIRES: the caller has a unit, or adds
  // the first one. Thread-safe.
  void add_activity() { word_.fetch_add(kUnit, std::memory_order_relaxed); }
  void drop_activity();
  // Adds a unit for a caller outside, who has none. False if the step is over.
  // Thread-safe.
  bool try_enter();
  // Begins a wait for something outside. Keeps `wait` until it ends. REQUIRES:
  // the caller has a unit of its own. Thread-safe.
  void begin_wait(StepWait& wait);
  // Ends the wait: it becomes a unit of the caller. Thread-safe.
  void end_wait(StepWait& wait);
  // Whether the step is not over and has no unit. Thread-safe.
  bool is_waiting() const;
  // Whether the step waits, and only for other runs on the same state; also for
  // peers, if it is a part. Thread-safe.
  bool waits_for_state() const;
  // Whether the step waits, and only for what its peers send. Thread-safe.
  bool waits_for_peers() const;
  // Names at most so many of its waits, with their reasons, but not that for
  // its hold. Thread-safe.
  std::vector<std::string> list_waits(size_t most) const;
  // Names a few of its waits. Thread-safe.
  std::string describe_waits() const;
  // The number of waits that have ended. Thread-safe.
  uint64_t waits_ended() const { return waits_ended_.load(); }

  // The step keeps itself alive until it is quiet. REQUIRES: called once,
  // before the first unit of activity.
  void keep_alive() { self_ = shared_from_this(); }

  // Called by the owner of the last unit. Set before the step starts.
  std::function<void(Step&)> on_quiet;
  // Called when the step begins to wait; it may have resumed by then. Set
  // before the step starts.
  std::function<void(Step&)> on_waiting;
  // Called by end_wait() if the step waited. Set before the step starts.
  std::function<void(Step&)> on_resumed;
  // Called when nothing of the step runs any more, to give its answer. So the
  // step can leave its session before the answer, unless it was given up. Null:
  // answer() is called. Set before the step starts.
  std::function<void(Step&, Answer, const RunStats&)> on_over;
  // Called with the answer, instead of waking a waiter. Never called on a lent
  // thread, nor in the middle of a kernel. Its exceptions are dropped. Set
  // before the step starts.
  std::function<void(Answer, const RunStats&)> on_answer;
  // The scheduler whose workers call it if the current thread must not. Set
  // together with it.
  Scheduler* scheduler = nullptr;

  // Gives the answer, with the known statistics, unless one was given before.
  // During a commit, it is delivered when the commit is done. Thread-safe.
  void answer(Answer answer, const RunStats& stats = {});
  // As answer(), but calls on_answer on a worker: on this thread, if it is one.
  // Thread-safe.
  void answer_on_worker(Answer answer, const RunStats& stats);
  // Whether the answer was given, so that no reasons are needed any more.
  bool answered() const { return answered_.load(); }
  // Waits for the answer, and for `stats` if not null. Fails the step at its
  // deadline, or when `goes_on` (RunOptions::goes_on) returns false, and
  // answers it after the grace period.
  Answer wait(RunStats* stats = nullptr,
              const std::function<bool()>& goes_on = nullptr);
  // Fails the step if its deadline has passed. Thread-safe.
  void check_deadline();
  // As check_deadline(), without looking at the clock. Thread-safe.
  void expire();
  // Fails the step for an external reason. The message of the answer also says
  // how far the run had come. Thread-safe.
  void stop(Status reason);
  // Whether the first error is that of stop() or expire(). Thread-safe.
  bool was_stopped() const;
  // Answers a step that is still busy after the grace period, with its first
  // error. REQUIRES: there is one. Thread-safe.
  void give_up();

  // Used for asynchronous runs, and for runs that are stopped.
  Timer::Entry deadline_entry;
  // The session's, guarded by its mutex.
  bool is_active = false;       // counts as active
  bool is_told_to_end = false;  // by the session, which ends
  // The border that it has passed, or null: Note [Borders] in shared_state.h.
  // Set before the step starts, and when it is over.
  devices::StateLock* passed = nullptr;
  // The hook in a cancel token: claimed when the step is over.
  std::shared_ptr<devices::CancelHook> token_hook;

 private:
  // A job that delivers the answer. It is a member, so that it needs no
  // allocation.
  class Later : public caf::resumable {
   public:
    explicit Later(Step& step) : step_(step) {}
    resume_result resume(caf::execution_unit*, size_t) override;
    void intrusive_ptr_add_ref_impl() override {}
    // The worker's last access to the job. May free the step, which contains
    // the job.
    void intrusive_ptr_release_impl() override;

   private:
    Step& step_;
  };

  static constexpr uint8_t kCancelled = 1, kHeld = 2, kFrozen = 4;
  static constexpr uint64_t kUnit = 1;
  static constexpr uint64_t kWait = uint64_t(1) << 32;
  static constexpr uint64_t kClosed = uint64_t(1) << 63;
  static constexpr uint64_t kUnits = kWait - 1;

  // Returns whether the error is the first. REQUIRES: mutex_ is held.
  bool fail_locked(Status&& status);
  Status late() const;
  // Records what the step waits for, for the messages about its end.
  void note_waits();
  void quiet();
  // Waits until is_delivered() holds, with the deadlines of wait().
  template <class F>
  void await(const F& is_delivered, const std::function<bool()>& goes_on);
  // The same up to the end of the time. False if the step was stopped.
  template <class F>
  bool await_in_time(const F& is_delivered,
                     const std::function<bool()>& goes_on);
  // Returns whether this call has closed the gate and nobody is inside.
  bool write_answer(Answer&& answer, const RunStats& stats);
  // REQUIRES: the gate is closed and nobody is inside; only one of these is
  // called, once. The timer calls the first one, too.
  friend class Timer;
  void deliver_answer();
  void deliver_on_worker();

  std::shared_ptr<Step> self_;  // from keep_alive() to quiet()
  std::atomic<bool> cancelled_{false};
  std::atomic<uint8_t> interrupts_{0};  // those below
  std::atomic<bool> faulted_{false};
  std::atomic<bool> answered_{false};   // some thread writes the answer
  std::atomic<bool> delivered_{false};  // it is written; set with mutex_ held
  std::atomic<uint64_t> word_{0};       // units, waits, the closed bit
  std::atomic<uint64_t> waits_ended_{0};
  std::optional<Answer> answer_;  // written once, before it is delivered
  RunStats stats_;                // the same
  devices::CancelList cancels_;
  devices::CommitGate gate_{[this] { deliver_on_worker(); }};
  mutable std::mutex mutex_;  // guards the below; held briefly
  std::condition_variable changed_;
  boost::intrusive::list<StepWait> waits_;
  Status error_;
  bool stopped_ = false;
  std::string waits_at_stop_;         // what it waited for then; may be empty
  std::shared_ptr<Step> later_self_;  // until the job has run
  Later later_{*this};
  Ready later_ready_{&later_};
};

// The open steps of a session.
using StepList = boost::intrusive::list<Step>;

}  // namespace tagflow::actors
