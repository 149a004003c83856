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
// To take from a queue that is empty is to wait, perhaps for long, and no
// thread may block for it. So a queue is an actor: an operation is a message in
// its mailbox (Mailbox), and what cannot be done yet stands in a *line* until
// it can. Whoever changes the queue serves the lines before he leaves.
//
// An operation changes nothing while it waits, so that a cancellation has
// nothing to undo: who wants ten elements takes ten at once, when they are
// there. The one exception are the elements of an enqueue_many that is larger
// than the space: those that went in stay in.
//
// Most operations can be done at once. For these there is no message: the
// thread goes into the mailbox if nobody is inside, and does it
// (ActorKernel::try_compute).
//
//             kernel            inside of the actor           cancellation
//   made --> posted --> in its line --> claimed --> performed, answered
//                             \--------------------> answered, taken out
//
// Invariants:
//   1. An operation is answered once: by who claims its CancelHook, or by the
//      cancellation. One that is held (Operation::hold), because some of it is
//      being done, is answered by who holds it.
//   2. The context of an operation is used only by who holds or claimed it: its
//      step can end only when it was answered.
//   3. State changes inside of the actor, and of the gate of the operation's
//      step (devices/commit_gate.h).
//   4. Operations of a line are performed in the order of their arrival, where
//      the actor is in order.
//   5. After the actor has ended nothing stands in a line.

class ActorKernel;
class Operation;
class StateActor;

// Where an operation waits: behind others that put something in, or that take
// something out.
enum class Line : uint8_t { kIn, kOut };

// How far an operation can be performed now.
enum class Readiness : uint8_t { kNotYet, kPart, kWhole };

// What one execution of a kernel asks for, in the unit of its actor.
struct Errand {
  int64_t amount = 1;  // of 0 nothing waits
  int64_t done = 0;
};

// A message to an actor.
struct ActorMessage {
  enum class Kind : uint8_t { kArrived, kCancelled, kEnd };
  Kind kind;
  ActorMessage* next = nullptr;
  std::shared_ptr<Operation> operation = nullptr;  // kept while it is under way
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

  // Keeps a cancellation from answering it. False where it was cancelled.
  bool hold();
  // False where it was cancelled meanwhile: then this has answered it.
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

// Thread-safe, but for what is called inside.
class StateActor : public StateObject {
 public:
  // 'queue "q" has 0 of 10 elements, 3 dequeues wait', for who waits. Reads
  // nothing but what any thread may. Thread-safe.
  virtual std::string describe_state() const = 0;
  size_t waiting(Line line) const {
    return waiting_[size_t(line)].load(std::memory_order_relaxed);
  }

  // Does it now, as far as nobody is inside and nothing has to wait.
  std::optional<Status> try_now(const ActorKernel& kernel,
                                KernelContext& context, Errand& errand);
  // The same, now or later, by whoever is inside then.
  void post(std::shared_ptr<Operation> operation);

  // --- Called inside, by kernels.
  // The one that is served next; null where none waits.
  const Operation* first(Line line) const;
  // Answers all that wait there.
  void end_line(Line line, const Status& reason);

 protected:
  // Whether only the first of a line is served.
  virtual bool is_in_order() const { return true; }
  // --- Called inside.
  // Lets go of the contents.
  virtual void clear() noexcept = 0;
  // Who waits has changed.
  virtual void on_lines_changed() noexcept {}

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
  // Out of its line.
  std::shared_ptr<Operation> take_out(Operation& operation);
  Waiting& at(Line line) { return lines_[size_t(line)]; }

  Mailbox<ActorMessage> mailbox_;
  ActorMessage end_{ActorMessage::Kind::kEnd};
  std::array<Waiting, 2> lines_;
  std::array<std::atomic<size_t>, 2> waiting_{};
};

}  // namespace tagflow::devices
