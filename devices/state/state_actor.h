// StateActor: state whose operations may wait, as those of a queue do.
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>

#include "devices/kernel.h"
#include "devices/state/mailbox.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// Note [Operations that wait]
// Taking from an empty queue means to wait, perhaps for long, and no thread may
// block for it. So a queue is an actor: an operation is a message in its
// mailbox (Mailbox), and an operation that cannot be done yet waits in a
// *line*. A thread that changes the queue serves the lines before it leaves.
//
// An operation changes nothing while it waits, so that a cancellation has
// nothing to undo: a dequeue of ten elements takes all ten at once, when they
// are there. The only exception is an enqueue_many that is larger than the
// space: elements that were put in stay in.
//
// Most operations can be done at once. These need no message: the thread enters
// the mailbox if nobody is inside, and performs them
// (ActorKernel::try_compute).
//
//             kernel            inside of the actor           cancellation
//   made --> posted --> in its line --> claimed --> performed, answered
//                             \--------------------> answered, taken out
//
// Invariants:
//   1. An operation is answered once: by the thread that claims its CancelHook,
//      or by the cancellation. If an operation is held (Operation::hold),
//      because part of it is being done, its holder answers it.
//   2. The context of an operation is used only by the thread that holds or
//      claimed it: its step can end only after it was answered.
//   3. State changes only inside the actor, and inside the gate of the
//      operation's step (devices/commit_gate.h).
//   4. Operations of a line are performed in the order of their arrival, if the
//      actor is in order.
//   5. After the actor has ended no operation waits in a line.

class ActorKernel;
class Operation;
class StateActor;

// The line in which an operation waits: of those that put something in, or of
// those that take something out.
enum class Line : uint8_t { kIn, kOut };

// How far an operation can be performed now.
enum class Readiness : uint8_t { kNotYet, kPart, kWhole };

// What one execution of a kernel requests, in the unit of its actor.
struct Errand {
  int64_t amount = 1;  // 0: never waits
  int64_t done = 0;
};

// A message to an actor.
struct ActorMessage {
  enum class Kind : uint8_t { kArrived, kCancelled, kWoken, kRoom, kEnd };
  Kind kind;
  ActorMessage* next = nullptr;
  std::shared_ptr<Operation> operation = nullptr;  // kept while in progress
};

// One execution of a kernel that could not be done at once.
class Operation final
    : public CancelHook,
      public std::enable_shared_from_this<Operation>,
      public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
 public:
  Operation(const ActorKernel& kernel, Ref<StateActor> actor,
            KernelContext& context, const Errand& errand, Completion done);

  const ActorKernel& kernel() const { return kernel_; }
  const Errand& errand() const { return errand_; }
  // Calls the completion. REQUIRES: the caller claimed it, or its hook was
  // never added.
  void answer(Status status);
  Status cancelled() const;

 protected:
  void on_cancel() override;

 private:
  friend class StateActor;
  friend class ActorKernel;
  enum Use : int { kFree, kHeld, kHeldAndCancelled, kOver };

  // Keeps a cancellation from answering it. False if it was cancelled.
  bool hold();
  // False if it was cancelled meanwhile: then this has answered it.
  bool let_go();

  const ActorKernel& kernel_;
  const Ref<StateActor> actor_;
  KernelContext& context_;
  Errand errand_;
  Completion done_;
  std::atomic<int> use_{kFree};
  ActorMessage arrived_{ActorMessage::Kind::kArrived};
  ActorMessage cancelled_{ActorMessage::Kind::kCancelled};
  std::shared_ptr<Operation> self_;  // while it stands in a line
};

// Thread-safe, except for the functions that are called inside.
class StateActor : public StateObject {
 public:
  // 'queue "q" has 0 of 10 elements, 3 dequeues wait', for waits. Reads only
  // what any thread may read. Thread-safe.
  virtual std::string describe_state() const = 0;
  size_t waiting(Line line) const {
    return waiting_[size_t(line)].load(std::memory_order_relaxed);
  }

  // From now on, until it is called with false, what is offered is taken even
  // if the actor is full: no operation waits for room. So steps that have begun
  // can end: Note [Borders] in actors/shared_state.h.
  void make_room(bool on);

  // Performs it now, if nobody is inside and nothing has to wait.
  std::optional<Status> try_now(const ActorKernel& kernel,
                                KernelContext& context, Errand& errand);
  // Performs it now or later, by the thread that is inside then.
  void post(std::shared_ptr<Operation> operation);

  // --- Called inside, by kernels.
  // The next operation to be served; null if none waits.
  const Operation* first(Line line) const;
  // Answers all operations that wait there.
  void end_line(Line line, const Status& reason);

 protected:
  // Whether only the first of a line is served.
  virtual bool is_in_order() const { return true; }
  // --- Called inside.
  // Drops the contents.
  virtual void clear() noexcept = 0;
  // Called when a line has changed.
  virtual void on_lines_changed() noexcept {}
  // What the actor waited for has happened: on_woken() is called inside, also
  // after the end, and the lines are served. May be called from any thread.
  // REQUIRES: on_woken() was called for each earlier call; the caller holds a
  // reference.
  void wake();
  virtual void on_woken() noexcept {}
  // Whether room is made: then there is no limit.
  bool makes_room() const {
    return makes_room_.load(std::memory_order_relaxed);
  }

  void on_end(const Status& reason) final;

 private:
  using Waiting = boost::intrusive::list<Operation>;
  enum class Outcome : uint8_t { kNothing, kSome, kDone, kDropped };

  friend class Operation;
  void post(ActorMessage& message, std::shared_ptr<Operation> operation);
  void handle(ActorMessage& message) noexcept;
  void leave() noexcept;
  void arrive(std::shared_ptr<Operation> operation);
  void serve_lines();
  bool serve(Line line);
  Outcome attempt(Operation& operation, Status& status);
  // Removes it from its line.
  std::shared_ptr<Operation> take_out(Operation& operation);
  Waiting& at(Line line) { return lines_[size_t(line)]; }

  Mailbox<ActorMessage> mailbox_;
  ActorMessage woken_{ActorMessage::Kind::kWoken};
  ActorMessage room_{ActorMessage::Kind::kRoom};
  ActorMessage end_{ActorMessage::Kind::kEnd};
  std::atomic<bool> makes_room_{false};
  std::atomic<bool> is_room_posted_{false};
  std::array<Waiting, 2> lines_;
  std::array<std::atomic<size_t>, 2> waiting_{};
};

}  // namespace tagflow::devices
