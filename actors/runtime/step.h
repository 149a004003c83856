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
#include "graph/tensor.h"

namespace tagflow::actors {

// Note [Life of a step]
// A step is *active* while some actor, kernel or device of the engine has work
// of it in hand: while it has units of activity (Note [Activity] in runner.h).
// It *waits* while it has none, but something outside of it was asked and has
// not answered: an asynchronous kernel that waits for a queue, a peer, a timer,
// a thread. Waits are counted beside the units, in the same word, and named by
// the nodes whose kernels have not answered. It is *over* when it has neither.
// Then the word is closed, and nobody can get a unit of it any more.
//
//              begin_wait, last unit dropped
//            +-------------------------------> waiting
//   active --+                                    |
//      ^     +--> over: no unit, no wait          | end_wait: a wait becomes a
//      |                                          v unit, in one step
//      +------------------------------------------+
//
// A step that is over without its result made no progress: a deadlock, told at
// once. One that waits is left alone until the wait, the time, or a
// cancellation ends; which steps are stalled, because they wait for one another
// and nobody else is left, only who submits runs can say: Session::stalled().
//
// Cancelling - by an error, a time-out, the caller, the end of the session -
// sets the flag that every handler looks at, and calls the hooks of all waits
// (devices/cancellation.h), outside of the step's lock, on the thread that
// cancels. Each answers its wait, and so the step comes to be over. A time-out
// and the caller *stop* a step: its answer, given when it is at rest or after a
// grace, then says how far the run had come.
//
// What changes state beyond the step passes its gate (devices/commit_gate.h),
// which the answer closes.
//
// Invariants:
//   1. The first error wins; it sets cancelled(), after which no batch of the
//      step has any effect.
//   2. The answer is given exactly once, after the last commit.
//   3. on_quiet is called exactly once, when nothing of the step runs or waits.
//      Why: the word changes by atomic operations only; it is closed by the
//      compare-exchange that takes the last unit where there is no wait. A unit
//      is added by who has one, by try_enter(), which fails once it is closed,
//      or in exchange for a wait. So nobody can add one afterwards.
//   4. Who has a unit or a wait may use the step; who gives the last one back
//      does not touch it afterwards.

// What arrived for one fetch. Written once, by the iteration of the root frame
// that produces it.
struct FetchSlot {
  enum State : uint8_t { kMissing, kLive, kDead };
  Tensor value;
  State state = kMissing;
};

// A wait of a step, while it lasts: in the request of an asynchronous kernel.
struct StepWait
    : boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
  devices::WaitsFor what = devices::WaitsFor::kOutside;
  const graph::Node* node = nullptr;
  // Those of an asynchronous kernel, which know more. The context lives until
  // the wait ends.
  const devices::AsyncKernel* kernel = nullptr;
  const devices::KernelContext* context = nullptr;
  // What it waited for when the step was stopped, if it did.
  std::string at_stop;

  // 'queue "q" has 0 of 10 elements'; empty where the kernel does not say.
  // REQUIRES: it has not ended.
  std::string reason() const;
};

// Life cycle: created by the session; active or waiting; over; its actors are
// taken back; answered, with the result or the first error. Where a time-out or
// the caller stops it, it is answered after kGrace at the latest: a kernel that
// cannot be interrupted outlives the answer without harm.
class Step : public std::enable_shared_from_this<Step>,
             public boost::intrusive::list_base_hook<
                 boost::intrusive::link_mode<boost::intrusive::safe_link>> {
 public:
  using Answer = Result<std::vector<Tensor>>;
  // How long a step that is stopped may take to come to rest, so that its
  // answer can say how far the run had come.
  static constexpr std::chrono::milliseconds kGrace{20};

  Step(uint64_t id, size_t fetches);
  ~Step();

  // What the step needs until its end, as its session. First: goes last.
  std::shared_ptr<void> owner;
  // What runs it, from its start on.
  std::shared_ptr<void> executable;
  bool counts = false;  // the answer comes with stats
  devices::StepInfo info;
  std::optional<devices::NumberedRun> random;  // set before the step starts
  bool urgent = false;  // goes before others where workers are few
  Observer* observer = nullptr;
  Trace* trace = nullptr;
  std::vector<FetchSlot> fetches;
  // Zero where there is none. Set before the step starts.
  std::chrono::steady_clock::time_point deadline;
  std::chrono::nanoseconds timeout{0};

  // Poisons the step, and has all waits cancelled; later errors are dropped.
  // Thread-safe.
  void fail(Status status);
  // The same for what is being thrown. REQUIRES: called in a catch block.
  // Thread-safe.
  void fault() noexcept;
  // Whether something was thrown: the step's actors may be in any state.
  bool faulted() const { return faulted_.load(std::memory_order_relaxed); }
  // Reads the flag that fail() sets. Thread-safe.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // The first error, or OK. Thread-safe.
  Status error() const;

  // Units of activity. REQUIRES of add: the caller has one, or is the first.
  // Thread-safe.
  void add_activity() { word_.fetch_add(kUnit, std::memory_order_relaxed); }
  void drop_activity();
  // A unit for somebody outside, who has none. False where the step is over.
  // Thread-safe.
  bool try_enter();
  // Something outside is asked. Keeps `wait` until it ends. REQUIRES: the
  // caller has a unit, which is not the wait's. Thread-safe.
  void begin_wait(StepWait& wait);
  // It has answered: what was a wait is a unit of the caller's now.
  // Thread-safe.
  void end_wait(StepWait& wait);
  // It has neither ended nor a unit. Thread-safe.
  bool is_waiting() const;
  // The step waits, and for other runs on the same state only. Thread-safe.
  bool waits_for_state() const;
  // The nodes that it waits for, a few of them. Thread-safe.
  std::string describe_waits() const;
  // Grows with each wait that ends. Thread-safe.
  uint64_t waits_ended() const { return waits_ended_.load(); }

  // The step keeps itself alive until it is quiet, whoever else lets go of it.
  // REQUIRES: called once, before the first unit of activity.
  void keep_alive() { self_ = shared_from_this(); }

  // Called by the last unit's holder. Set before the step starts.
  std::function<void(Step&)> on_quiet;
  // Called when the step begins to wait, possibly when it has gone on since.
  // Set before the step starts.
  std::function<void(Step&)> on_waiting;
  // Called by end_wait() where the step waited. Set before the step starts.
  std::function<void(Step&)> on_resumed;
  // Called when nothing of the step runs any more, to give its answer: so it
  // may leave its session before, unless it was given up. Null: it is just
  // answered. Set before the step starts.
  std::function<void(Step&, Answer, const RunStats&)> on_over;
  // Called with the answer, instead of waking a waiter; on no thread that is
  // only lent, nor in the middle of a kernel. What it throws is dropped. Set
  // before the start.
  std::function<void(Answer, const RunStats&)> on_answer;
  // Whose workers do that, where the thread at hand must not. Set with it.
  Scheduler* scheduler = nullptr;

  // Gives the answer, with what the run did as far as it is known, unless it
  // was given; in the middle of a commit, when that is done. Thread-safe.
  void answer(Answer answer, const RunStats& stats = {});
  // The same, with on_answer on a worker: this thread, where it is one.
  // Thread-safe.
  void answer_on_worker(Answer answer, const RunStats& stats);
  // Whether it was, so that nobody asks for reasons any more.
  bool answered() const { return answered_.load(); }
  // Waits for the answer, and for the stats where not null; after the deadline
  // fails the step, and after the grace answers.
  Answer wait(RunStats* stats = nullptr);
  // Fails the step if its deadline has passed. Thread-safe.
  void check_deadline();
  // The same without looking at the clock. Thread-safe.
  void expire();
  // Fails the step for a reason from outside of it, whose message is to say how
  // far the run had come. Thread-safe.
  void stop(Status reason);
  // The first error is that of stop() or expire(). Thread-safe.
  bool was_stopped() const;
  // Answers a step that was still busy after the grace, with its first error.
  // REQUIRES: there is one. Thread-safe.
  void give_up();

  // Of asynchronous runs, and of those that are stopped.
  Timer::Entry deadline_entry;
  // The session's, guarded by its mutex.
  bool has_turn = false;        // counts as active
  bool is_told_to_end = false;  // of the session's end
  // Has passed the border, or is to: Note [Borders] in shared_state.h. Set
  // before the step starts, and when it is over.
  bool has_passed = false;
  // Of a cancel token: claimed when the step is over.
  std::shared_ptr<devices::CancelHook> token_hook;

 private:
  // The answer, as a job: in the step, so that it needs no memory.
  class Later : public caf::resumable {
   public:
    explicit Later(Step& step) : step_(step) {}
    resume_result resume(caf::execution_unit*, size_t) override;
    void intrusive_ptr_add_ref_impl() override {}
    // The last that the worker does with it: it lies in the step.
    void intrusive_ptr_release_impl() override;

   private:
    Step& step_;
  };

  static constexpr uint64_t kUnit = 1;
  static constexpr uint64_t kWait = uint64_t(1) << 32;
  static constexpr uint64_t kClosed = uint64_t(1) << 63;
  static constexpr uint64_t kUnits = kWait - 1;

  // Returns whether the error is the first. REQUIRES: mutex_ is held.
  bool fail_locked(Status&& status);
  Status late() const;
  // What it waits for, for messages of its end.
  void note_waits();
  void quiet();
  // Waits until then, as wait() says.
  template <class F>
  void await(const F& is_delivered);
  // Whether the gate is closed by this, and nobody is inside.
  bool write_answer(Answer&& answer, const RunStats& stats);
  // REQUIRES of these: the gate is closed and nobody is inside; one is called,
  // once. Of the first, the timer's, too.
  friend class Timer;
  void deliver_answer();
  void deliver_on_worker();

  std::shared_ptr<Step> self_;  // from keep_alive() to quiet()
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> faulted_{false};
  std::atomic<bool> answered_{false};   // the answer is somebody's to write
  std::atomic<bool> delivered_{false};  // it is there; set with mutex_ held
  std::atomic<uint64_t> word_{0};       // units, waits, the mark
  std::atomic<uint64_t> waits_ended_{0};
  std::optional<Answer> answer_;  // written once, before it is delivered
  RunStats stats_;                // the same
  devices::CancelList cancels_;
  devices::CommitGate gate_{[this] { deliver_on_worker(); }};
  mutable std::mutex mutex_;  // guards the below; held briefly
  std::condition_variable changed_;
  boost::intrusive::list<StepWait> waits_;
  size_t state_waits_ = 0;  // of them, for shared state
  Status error_;
  bool stopped_ = false;
  std::string waits_at_stop_;         // what it waited for then, or nothing
  std::shared_ptr<Step> later_self_;  // until the job has run
  Later later_{*this};
  Ready later_ready_{&later_};
};

// The open steps of a session.
using StepList = boost::intrusive::list<Step>;

}  // namespace tagflow::actors
