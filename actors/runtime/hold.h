// Hold: keeps a step from going on, so that somebody can look at it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/frame.h"
#include "actors/runtime/step.h"
#include "devices/cancellation.h"

namespace tagflow::actors {

class RemoteHold;   // actors/session/inspector.h
struct RunContext;  // actors/runtime/run_context.h

// Note [Holds]
// The state of an actor belongs to the thread that runs it. To look at a step,
// one must have it at rest. So while somebody looks, every frame and iteration
// actor *parks* the batches that it gets here instead of handling them. What
// runs already goes on, and when it has ended, the step has no unit of activity
// left. It is not over, since the hold is one of its waits. Now its state can
// be read; afterwards the parked batches are delivered again. This takes some
// tens of microseconds, or as long as the longest kernel; so whoever looks says
// how long it waits for that.
//
// A *stop* parks only batches with which iterations of a loop would begin, from
// a number on. The rest of the step goes on until it needs them.
//
// An actor learns of a hold by the word that also says whether its step is
// cancelled (Step::interrupted), so a step that nobody looks at runs as fast as
// one without a hold.
//
// Invariants:
//   1. A step with parked batches waits for its hold: it is not over.
//   2. No actor of a step changes its state while f of look() reads it. Proof:
//      the step has no unit then. A unit that comes later is that of a wait
//      which ends. Its thread changes the step's word after look() has read it,
//      so it sees the interruption, and take() waits until f has returned.
//   3. A cancellation ends the hold: it delivers what is parked, and nothing is
//      parked any more. So a held step ends as any other does.

// Where iterations of loops stop before they begin.
struct StopPoint {
  std::string frame;      // its static name; empty: of all loops
  int64_t iteration = 0;  // and all after it
};

// One per step, which owns it together with whoever looks. It may outlive the
// step. Thread-safe.
class Hold final : public devices::CancelHook,
                   public std::enable_shared_from_this<Hold> {
 public:
  // A batch that is parked, and the instance whose iteration it would begin;
  // null: it would begin none. A stop parks only such that would.
  struct Parked {
    EngineActor* actor = nullptr;
    Batch* batch = nullptr;
    const FrameInstance* begins = nullptr;
  };

  // Where it stops from the start.
  explicit Hold(std::optional<StopPoint> stop = std::nullopt);
  ~Hold() override;

  // Becomes the hold of a step, which runs in that context. If the step is
  // cancelled already, it holds nothing. REQUIRES: nothing of it runs yet, but
  // the caller has a unit
  void attach(const std::shared_ptr<Step>& step, RunContext& context);

  // It is that of a step whose parts are in other processes: it holds nothing
  // itself, but that does.
  void set_remote(std::weak_ptr<RemoteHold> remote);
  // Null: there is none, or it has gone.
  std::shared_ptr<RemoteHold> remote();

  // --- By those who look
  // Brings the step to rest, calls f(step), and lets it go on. False, without a
  // call, if it is over, or was not at rest in that time. f must be quick, and
  // must not wait for anything. Its exceptions are passed on.
  bool look(std::chrono::nanoseconds patience,
            const std::function<void(Step&)>& f);
  // Stops there from now on, or nowhere, and lets go what was stopped before.
  void stop_at(std::optional<StopPoint> stop);
  // Lets go what is stopped, and stops the next iteration of that frame (empty:
  // of any loop) which would begin.
  void advance(const std::string& frame);
  std::optional<StopPoint> stop();
  // REQUIRES: within f of look()
  std::span<const Parked> stopped() const { return stopped_; }
  // What comes next when nobody looks any more.
  std::span<const Parked> parked() const { return parked_; }
  RunContext& context() const { return *context_; }

  // --- By the engine
  // Parks the batch if the step is held: false if it is to be handled. `begins`
  // is the instance of which it would begin an iteration, if it would.
  // REQUIRES: the caller handles the batch, and has a unit
  bool take(EngineActor& actor, Batch* batch, const FrameInstance* begins);
  // Nothing of the step runs, but it waits.
  void on_rest();

 private:
  struct Wait;
  // What goes on when the lock is released.
  struct Freed {
    std::unique_ptr<Wait> wait;  // null: it lasts
    std::vector<Parked> parked;
    std::vector<Parked> stopped;
  };
  class Unit;

  void on_cancel() override;
  std::shared_ptr<Step> step();
  // Begins a command; `passes`: what is stopped passes.
  void command(std::optional<StopPoint> stop, bool passes);
  // REQUIRES for these: mutex_ is held.
  // `step` is null if it is over, or has not started.
  void set_stop(Step* step, std::optional<StopPoint> stop);
  void begin_wait(Step& step);
  void end_wait(Freed& freed);
  bool stops(const FrameInstance& frame, int64_t iteration) const;
  // REQUIRES: mutex_ is not held
  static void go_on(Step& step, const Freed& freed);

  std::mutex mutex_;  // guards the below; before that of the step
  std::weak_ptr<Step> step_;
  RunContext* context_ = nullptr;  // as long as the step is not over
  std::weak_ptr<RemoteHold> remote_;
  std::condition_variable changed_;
  bool is_ended_ = false;
  bool is_frozen_ = false;  // all batches are parked
  std::optional<StopPoint> stop_;
  uint32_t command_ = 0;  // counts stops; those that it lets pass: Batch::pass
  std::vector<Parked> parked_;
  std::vector<Parked> stopped_;
  std::unique_ptr<Wait> wait_;  // while it lasts
};

}  // namespace tagflow::actors
