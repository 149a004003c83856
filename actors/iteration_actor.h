// IterationActor: runs the iterations of one frame that fall to it.
#pragma once

#include <atomic>
#include <caf/actor.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "actors/device_actor.h"
#include "actors/engine_actor.h"
#include "actors/frame.h"
#include "actors/iteration_state.h"
#include "actors/observer.h"
#include "actors/trace.h"

namespace tagflow::actors {

// Note [The ring]
// The iteration actors of a frame form a cycle. Iteration n+1 runs on the next
// actor of the cycle after n's; if that one is still busy and the window
// allows, a fresh actor is put in between, by n, which alone may: it is the
// newest. If an iteration is retired before the next one began, it takes one
// actor out of the cycle and puts it aside, as the first that is put in again.
// So two actors alternate where nothing overlaps, and a runner can hold both;
// the ring grows only as iterations really are in flight together, and its
// order is always theirs.
// If the ring is full, the next actor runs the oldest iteration: what is sent
// to it waits there (parked) until that one is retired. The window needs no
// other bookkeeping.
//
// Note [The baton]
// Iteration n is retired when its predecessor is, and it has nothing ready, no
// child frame and no kernel outstanding. The mark `final` travels with its
// last tokens straight to n+1: retirement is in order without a hop through
// the frame. Iteration 0 gets its mark from the frame actor, with the last
// Enter. If n never started n+1, the loop has ended: n gives the mark, and the
// last Exits, to the frame actor.
//
// Life cycle of an actor: spawned by its frame, or by the newest iteration;
// idle; busy with iteration n (started by its first batch; running; waiting
// for children, kernels, its predecessor; retired); idle ...; stopped. In a
// step that was cut short the first batch marks the actor busy, with the
// iteration that it would have begun, and nothing else happens: so a time-out
// can say how far the loop had come.
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

  // For the time when the step is quiet.
  int64_t iteration() const { return iteration_; }
  const IterationState& state() const { return state_; }
  // Whether iteration() is of the frame's last instance, and its state that of
  // this iteration.
  bool is_of_instance() const { return generation_ == frame_.generation; }
  const FrameInstance& frame() const { return frame_; }
  const std::vector<FrameActor*>& children() const { return children_; }
  bool waits_for_predecessor() const { return !predecessor_done_; }
  bool has_fired(uint32_t node) const {
    return (state_.pending(node) & IterationState::kFired) != 0;
  }
  // How many inputs a node waits for that has not fired.
  uint32_t inputs_left(uint32_t node) const {
    return state_.pending(node) & IterationState::kCount;
  }
  // Whether the node fired, and its kernel or Recv has not answered.
  bool awaits(uint32_t node) const;
  // What the kernel of such a node waited for when the step was stopped; empty
  // where nobody knows. REQUIRES: the step is at rest.
  std::string_view reason_at_stop(uint32_t node) const;
  // Whether child `ordinal` is a call.
  bool is_call(uint32_t ordinal) const {
    return !plan_.calls.empty() && plan_.calls[ordinal].has_value();
  }
  // Whether child frame `ordinal` runs.
  bool child_live(size_t ordinal) const { return child_live_[ordinal] != 0; }
  void collect(Counters& counters) const;
  // Forgets an unfinished iteration, and lets go of its tensors.
  void reset();
  // Lets go of tensors at the end of a frame instance.
  void release_values();

 protected:
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  // The actions of a step, in the order of on_batch().
  void drop(Batch* batch);
  bool on_tokens(Batch* batch, Runner& runner);
  bool on_other(Batch* batch, Runner& runner);
  void begin(int64_t iteration, const ConstSet* constants, Runner& runner);
  void trace_turn(Runner& runner);
  void take_tokens(Batch* batch);
  void take_child_end(const Batch& batch);
  void take_return(Batch* batch);
  void take_constants(const ConstSet* constants);
  void arrive_constant(const Token& token);
  void take_answer(KernelRequest& request, Runner& runner);
  void take_kernel(KernelRequest* request, Runner& runner);
  void take_received(Batch* batch);
  void work(Runner& runner);
  void post_turn(Runner& runner);
  void retire(Runner& runner);
  void unpark(Runner& runner);

  void run_ready(Runner& runner);
  // Calls fire_one(node) until none is ready, the step is cancelled, or the
  // thread is to be given to others.
  template <class F>
  void fire_ready(Runner& runner, const F& fire_one);
  bool goes_on(Runner& runner);
  void fire(uint32_t node);
  void run_ready_traced(Runner& runner);
  void run_ready_observed(Runner& runner);
  void fire_observed(uint32_t node);
  bool trace_firing(uint32_t node, bool clock_is_due);
  void fire_other(uint32_t node, bool is_dead);
  bool fire_scalar(const NodeItem& item);
  void skip(const NodeItem& item);
  // Whether there is an observer: known where the code is compiled.
  enum class Observed : bool { kNo, kYes };
  void fire_switch(uint32_t node, Observed observed);
  std::optional<bool> read_predicate(uint32_t node);
  void fire_switch_n(uint32_t node);
  bool fetch_chooser(uint32_t node);
  void fire_merge(const NodeItem& item);
  void fire_call(const NodeItem& item);
  void fire_kernel(uint32_t node, const NodeItem& item);
  void park(uint32_t node, devices::StateClaim&& claim);
  void fire_async(uint32_t node, const NodeItem& item);
  bool compute_at_once(const NodeItem& item,
                       const devices::AsyncKernel& kernel);
  void fire_send(uint32_t node, const NodeItem& item);
  void send_transfer(const NodeItem& item, bool is_dead, Tensor&& value);
  void fire_recv(uint32_t node, const NodeItem& item);
  Token& add_transfer(const NodeItem& item, bool is_dead);
  void request_kernel(uint32_t node);
  void request_copy(uint32_t node, KernelRequest::Work work, Tensor&& value);
  bool defer_if_heavy(uint32_t node, const NodeItem& item);
  void run_heavy(Runner& runner);
  void finish_kernel(const NodeItem& item, Tensor* outputs);
  void pass_on(const NodeItem& item, const PortItem& port, Observed observed);
  void drop_input(const NodeItem& item, uint32_t i);
  void consume_inputs(const NodeItem& item);
  Tensor take_input(const NodeItem& item, uint32_t i);
  void fail(Status status, const graph::Node& node);

  void arrive(uint32_t arrival, bool is_dead, Tensor&& value);
  void send_port(const PortItem& port, Tensor&& value);
  void send_control(const PortItem& port);
  void send_dead_edge(const EdgeItem& edge);
  void send_dead(const PortItem& port);
  Token& add_token(Batch*& batch, BatchKind kind, const EdgeItem& edge);
  void send_edge(const EdgeItem& edge, Tensor&& value);
  void send_to_many(const PortItem& port, Tensor&& value);
  void send_copies(const EdgeItem* edge, const EdgeItem* end,
                   const Tensor& value);
  void send_dead_to_many(const PortItem& port);
  void send_control_to_many(const PortItem& port);
  // Puts what leads to very many, from edge `first` on, into `wide_`.
  void send_in_parts(const PortItem& port, uint32_t first, bool is_dead,
                     Tensor&& value);
  void send_part();
  void send_elsewhere(const EdgeItem& edge, Tensor&& value);
  void send_copy(const EdgeItem& edge, const Tensor& value);
  void send_dead_elsewhere(const EdgeItem& edge);
  void load_constants();

  void post_requests(Runner& runner);
  void post_transfers(Runner& runner);
  void post_enters(Runner& runner);
  void post_exits(Runner& runner);
  void post_ahead(Runner& runner);
  void note_memory_at_begin();
  void note_memory_at_end();
  bool lacks_memory_ahead() const;
  Batch* take_next(bool final);
  void choose_successor(bool retiring);
  void grow_ring();
  void shrink_ring();
  Batch* take_batch(BatchKind kind);
  KernelRequest* take_request(uint32_t node);
  KernelRequest* take_kernel_request(uint32_t node);
  void add_to_requests(KernelRequest* request);
  static bool frees_memory(const KernelRequest& request);
  void take_copy(uint32_t node, Tensor&& value);
  bool must_copy_in(const Tensor& value) const;
  void give_request(KernelRequest* request);
  void drop_batches();
  Place place() const { return frame_.place(tag_); }

  FrameInstance& frame_;
  const FramePlan& plan_;
  // The plan's arrays, a step nearer.
  const NodeItem* const nodes_;
  const PortItem* const ports_;
  const EdgeItem* const edges_;
  const ArrivalItem* const arrivals_;
  // The frame instance's, from begin() on.
  bool watched_ = false;
  const bool has_budget_;  // Note [Budget]
  Observer* observer_ = nullptr;
  TraceBuffer* trace_ = nullptr;  // the thread's, while it handles a batch
  IterationState state_;
  IterationActor* next_;  // in the ring, or of those put aside
  std::atomic<bool> busy_{false};
  int64_t iteration_ = -1;
  uint64_t generation_ = 0;  // of the frame, when the iteration began
  devices::Tag tag_;
  Step* step_ = nullptr;
  bool predecessor_done_ = false;
  uint32_t received_ = 0;       // batches from the predecessor
  uint32_t expected_ = 0;       // how many there are; 0 while not known
  uint32_t sent_ = 0;           // batches to the successor
  uint32_t exits_ = 0;          // kExit batches, of this and all before it
  int outstanding_ = 0;         // live child frames and kernels elsewhere
  int64_t used_at_begin_ = -1;  // bytes: Note [Budget]; -1: was not alone then
  uint32_t fired_ = 0;  // nodes of this iteration, skipped ones included
  const ConstSet* constants_ = nullptr;
  uint64_t loaded_epoch_ = 0;                 // of the constants in the slots
  bool holds_values_ = false;                 // beyond an iteration's end
  IterationActor* successor_ = nullptr;       // once it was sent something
  const ConstSet* sent_constants_ = nullptr;  // to it
  Batch* out_next_ = nullptr;
  Batch* out_exit_ = nullptr;
  Batch* out_transfers_ = nullptr;
  std::vector<Batch*> out_enter_;  // by child
  std::vector<FrameActor*> children_;
  std::vector<caf::actor> child_handles_;
  std::vector<uint8_t> child_live_;
  std::vector<uint32_t> child_received_;
  std::vector<uint32_t> child_expected_;
  std::vector<Batch*> parked_;
  // Ready nodes worth a hop, and this for each of `wide_`, so that there is one
  // list to look at.
  static constexpr uint32_t kWideSends = ~0u;
  std::vector<uint32_t> heavy_;
  // An output with so many consumers that they get it a part at a time: to
  // serve a million of them takes longer than a time slice.
  struct WideSend {
    const EdgeItem* next;
    const EdgeItem* end;
    bool is_dead;
    Tensor value;
  };
  std::vector<WideSend> wide_;
  Batch turn_;  // to itself: Note [Turns] in scheduler.h
  bool turn_is_posted_ = false;
  // To an accelerator, a list.
  KernelRequest* first_request_ = nullptr;
  KernelRequest* last_request_ = nullptr;
  TakingTurn taken_;  // of the answer that is handled: Note [Freeing first]
  std::vector<Tensor> outputs_;  // of the kernel that fires
  // By arrival; for the constant edges.
  std::vector<const Token*> constant_at_;
  Tensor passing_;  // between a node and its edges; then empty
  std::vector<std::unique_ptr<KernelRequest>> requests_;
  std::vector<KernelRequest*> free_requests_;
  Counters counters_;
};

}  // namespace tagflow::actors
