// IterationActor: the protocol of an iteration: its predecessor and successor,
// its children, its end. The interpreter runs its nodes.
#pragma once

#include <atomic>
#include <caf/actor.hpp>
#include <string_view>
#include <vector>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/interpreter.h"

namespace tagflow::actors {

// Note [The ring]
// The iteration actors of a frame form a cycle. Iteration n+1 runs on the actor
// after that of n. If this actor is still busy and the window allows it,
// iteration n inserts a new actor in between; only the newest iteration may do
// so. If an iteration is retired before the next one begins, it removes one
// actor from the cycle and puts it aside, to be inserted again first. So two
// actors alternate if no iterations overlap, and a runner can hold both. The
// ring grows only if iterations really are in flight together, and its order is
// always that of the iterations.
// If the ring is full, the next actor runs the oldest iteration: batches that
// are sent to it are parked there until that iteration is retired. The window
// needs no other bookkeeping.
//
// Note [The baton]
// Iteration n is retired when its predecessor is retired and it has no ready
// node, no child frame and no outstanding kernel. The mark `is_last` travels
// with its last tokens straight to n+1: retirement is in order without a hop
// through the frame. Iteration 0 gets its mark from the frame actor, with the
// last Enter. If n never started n+1, the loop has ended: n sends the mark, and
// the last Exits, to the frame actor.
//
// Life cycle of an actor: spawned by its frame, or by the newest iteration;
// idle; busy with iteration n (started by its first batch; running; waiting
// for children, kernels, its predecessor; retired); idle ...; stopped. In a
// cancelled step the first batch only marks the actor as busy with the
// iteration that it would have begun: so the message of a time-out can say how
// far the loop had come.
//
// Invariants:
//   1. At most `window` iterations of a frame instance are busy at once.
//   2. An iteration starts after its predecessor started, and is retired
//      after it.
//   3. Nothing is allocated per iteration once the ring has its size.
class IterationActor : public EngineActor {
 public:
  IterationActor(caf::actor_config& config, FrameInstance& frame);

  bool busy() const { return busy_.load(std::memory_order_acquire); }

  // Accessors for a step that is quiet.
  int64_t iteration() const { return interpreter_.iteration(); }
  const IterationState& state() const { return interpreter_.state(); }
  // Whether iteration() belongs to the frame's last instance, and state() to
  // this iteration.
  bool is_of_instance() const { return generation_ == frame_.generation; }
  const FrameInstance& frame() const { return frame_; }
  const std::vector<FrameActor*>& children() const { return children_; }
  bool waits_for_predecessor() const { return !predecessor_done_; }
  bool has_fired(uint32_t node) const {
    return (state().pending(node) & IterationState::kFired) != 0;
  }
  // How many inputs a node still waits for. REQUIRES: it has not fired.
  uint32_t inputs_left(uint32_t node) const {
    return state().pending(node) & IterationState::kCount;
  }
  // Whether the node has fired, but its kernel or Recv has not answered.
  bool awaits(uint32_t node) const { return interpreter_.awaits(node); }
  // What the kernel of such a node waited for when the step was stopped; empty
  // if unknown. REQUIRES: the step is at rest.
  std::string_view reason_at_stop(uint32_t node) const {
    return interpreter_.reason_at_stop(node);
  }
  // Whether child `ordinal` is a call.
  bool is_call(uint32_t ordinal) const {
    return !plan_.calls.empty() && plan_.calls[ordinal].has_value();
  }
  // Whether child frame `ordinal` runs.
  bool child_live(size_t ordinal) const {
    return interpreter_.child_live(ordinal);
  }
  // How many iterations it has begun, in all steps.
  uint64_t num_begun() const { return counters_.iterations; }
  void collect(Counters& counters) const;
  // Discards an unfinished iteration, and releases its tensors.
  void reset();
  // Releases tensors at the end of a frame instance.
  void release_values();

 protected:
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  // The actions of a step, in the order of on_batch().
  bool is_held_back(Batch* batch);
  void drop(Batch* batch);
  bool on_tokens(Batch* batch, Runner& runner);
  bool on_other(Batch* batch, Runner& runner);
  void begin(Step* step, int64_t iteration, const ConstSet* constants,
             Runner& runner);
  void take_tokens(Batch* batch);
  void take_child_end(const Batch& batch);
  void take_return(Batch* batch);
  void take_answer(KernelRequest& request, Runner& runner);
  void work(Runner& runner);
  void run_ready(Runner& runner);
  void run_heavy(Runner& runner);
  void post_turn(Runner& runner);
  void retire(Runner& runner);
  void unpark(Runner& runner);

  void post_requests(Runner& runner);
  void post_transfers(Runner& runner);
  void post_enters(Runner& runner);
  void post_exits(Runner& runner);
  void post_ahead(Runner& runner);
  void note_memory_at_begin(int64_t iteration);
  void note_memory_at_end();
  bool lacks_memory_ahead() const;
  Batch* take_next(bool is_last);
  void choose_successor(bool retiring);
  void grow_ring();
  void shrink_ring();

  FrameInstance& frame_;
  const FramePlan& plan_;
  const bool has_budget_;  // Note [Budget]
  Interpreter interpreter_;
  // interpreter_.out(), for faster access.
  Interpreter::Outbox& out_;
  IterationActor* next_;  // in the ring, or among the actors put aside
  std::atomic<bool> busy_{false};
  uint64_t generation_ = 0;  // of the frame, when the iteration began
  bool predecessor_done_ = false;
  uint32_t received_ = 0;       // batches from the predecessor
  uint32_t expected_ = 0;       // how many will come; 0: unknown
  uint32_t sent_ = 0;           // batches to the successor
  uint32_t exit_batches_ = 0;   // kExit, of this iteration and all before it
  int64_t used_at_begin_ = -1;  // bytes: Note [Budget]; -1: was not alone
  IterationActor* successor_ = nullptr;       // once a batch was sent to it
  const ConstSet* sent_constants_ = nullptr;  // to it
  std::vector<FrameActor*> children_;
  std::vector<caf::actor> child_handles_;
  std::vector<uint32_t> child_received_;
  std::vector<uint32_t> child_expected_;
  std::vector<Batch*> parked_;
  Batch turn_;  // to itself: Note [Turns] in scheduler.h
  bool turn_is_posted_ = false;
  TakingPermit taken_;  // of the answer in hand: Note [Freeing first]
  Counters counters_;
};

}  // namespace tagflow::actors
