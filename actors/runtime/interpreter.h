// Interpreter: fires the nodes of one iteration. It sends nothing itself: the
// caller puts tokens in, and takes out batches for other actors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/plan/plan.h"
#include "actors/runtime/batch.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/iteration_state.h"
#include "actors/runtime/kernel_request.h"
#include "actors/watch/observer.h"
#include "actors/watch/trace.h"

namespace tagflow::actors {

class Runner;  // actors/runtime/runner.h

// Each iteration actor has one, for all its iterations:
//
//   begin; { arrive, take_...; run; take what is in out() }, until nothing is
//   ready or outstanding; end
//
// No node is ready once run() returns, unless the step is cancelled, the thread
// must yield, or a heavy kernel is due. The actor decides whether the iteration
// may end, since it knows whether the previous one is over.
//
// Thread-compatible. Exceptions of kernels and observers are propagated.
//
// The members that are declared inline are defined in token_path.h.
class Interpreter {
 public:
  // Batches and requests to send; each is null while there is nothing to send.
  struct Outbox {
    Batch* next = nullptr;       // tokens of NextIterations
    Batch* exit = nullptr;       // of Exits
    Batch* transfers = nullptr;  // of Sends, and requests of Recvs
    std::vector<Batch*> enter;   // of Enters or a call's inputs, by child
    KernelRequest* first_request = nullptr;  // to an accelerator, a list
    KernelRequest* last_request = nullptr;
  };

  // Batches come from `pool`, and answers of kernels go to `owner`.
  Interpreter(const FrameInstance& frame, BatchPool& pool, EngineActor* owner);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // --- The iteration
  // Begins an iteration of the frame's instance. `constants` are the loop
  // constants that have arrived, or null.
  inline void begin(Step* step, int64_t iteration, const ConstSet* constants,
                    Runner& runner);
  // Ends the iteration.
  void end() {
    if (fired_ != plan_.nodes.size()) holds_values_ = true;
    if (observer_ != nullptr) observer_->on_iteration_end(location());
  }
  // Records an iteration that did not begin, since the step was cancelled.
  void note_unstarted(int64_t iteration) { iteration_ = iteration; }
  // The thread's next words in the trace are about this iteration.
  void switch_to(Runner& runner);
  // The thread leaves the iteration.
  void note_pause() {
    if (observer_ != nullptr) observer_->on_pause(location());
  }

  // --- Tokens that come
  inline void arrive(uint32_t arrival, bool is_dead, Tensor&& value);
  // Takes late loop constants: those that it has not got yet.
  void take_constants(const ConstSet* constants);
  // Takes an output of the call at node `node`.
  void take_result(uint32_t node, Token& token);
  // Ends the call, which has returned all outputs.
  void end_call(uint32_t node);
  // A child frame, which Enters or a call have started, runs; or has ended.
  void begin_child(uint32_t child) {
    child_live_[child] = 1;
    ++outstanding_;
  }
  void end_child(uint32_t child);
  // Takes tokens for Recvs.
  void take_received(Batch& batch);
  // Takes the answer of a kernel or a copy.
  void take_answer(KernelRequest& request);

  // --- Firing
  // Fires ready nodes. Returns whether a heavy kernel is due: the caller should
  // send the content of out() before that.
  bool run(Runner& runner);
  // Passes all heavy kernels but `kept` to f(KernelRequest&), in the order in
  // which they became ready, since other nodes are most likely to wait for the
  // first ones.
  template <class F>
  void give_heavy(size_t kept, const F& f) {
    if (heavy_.size() <= kept) return;
    std::reverse(heavy_.begin() + ptrdiff_t(kept), heavy_.end());
    while (heavy_.size() > kept) f(*take_heavy());
  }
  // Fires the remaining heavy kernel, if any.
  void fire_heavy(Runner& runner);
  // Whether run() has anything to do.
  bool is_ready() const { return state_.has_ready() || !heavy_.empty(); }
  // Whether child frames, kernels or Recvs have not answered.
  bool is_outstanding() const { return outstanding_ != 0; }

  // --- Sending
  Outbox& out() { return out_; }
  inline Batch* take_batch(BatchKind kind);
  const ConstSet* constants() const { return constants_; }

  // --- For the diagnosis of a quiet step, and for the actor
  int64_t iteration() const { return iteration_; }
  const devices::Tag& tag() const { return tag_; }
  Step* step() const { return step_; }
  bool is_watched() const { return watched_; }
  const IterationState& state() const { return state_; }
  // Whether the child frame runs.
  bool child_live(size_t child) const { return child_live_[child] != 0; }
  // Whether the node has fired, but its kernel, Recv or call has not answered.
  bool awaits(uint32_t node) const;
  // What the kernel of such a node waited for when the step was stopped; empty
  // if unknown. REQUIRES: the step is at rest.
  std::string_view reason_at_stop(uint32_t node) const;
  const Counters& counters() const { return counters_; }
  // For observers, on the thread that runs the iteration: the number of nodes
  // that have fired but not answered, deferred ones included; and the number of
  // child frames that were entered but have not ended, including those whose
  // tokens are not posted yet.
  size_t num_running() const;
  size_t num_children() const;
  // Releases tensors that outlive an iteration: loop constants, and unconsumed
  // ones.
  void release_values();
  // Discards an unfinished iteration, and everything that was not sent.
  void reset();

 private:
  void load_constants();
  void arrive_constant(const Token& token);

  // Calls fire_one(node) until no node is ready, the step is cancelled, or the
  // thread must yield.
  template <class F>
  inline void fire_ready(Runner& runner, const F& fire_one);
  bool goes_on(Runner& runner);
  inline bool must_run_heavy() const;
  bool run_traced(Runner& runner);
  bool run_observed(Runner& runner);
  bool trace_firing(uint32_t node, bool clock_is_due);
  inline void fire(uint32_t node);
  void fire_observed(uint32_t node);
  void fire_other(uint32_t node, bool is_dead);
  inline bool fire_scalar(const NodeItem& item);
  inline void skip(const NodeItem& item);
  // Whether there is an observer: a compile-time constant.
  enum class Observed : bool { kNo, kYes };
  inline void fire_switch(uint32_t node, Observed observed);
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
  void send_transfer(uint32_t node, bool is_dead, Tensor&& value);
  void fire_recv(uint32_t node, const NodeItem& item);
  Token& add_transfer(const TransferItem& transfer, bool is_dead);
  const TransferItem& transfer_of(const NodeItem& item) const;
  bool defer_if_heavy(uint32_t node, const NodeItem& item);
  KernelRequest* take_heavy();
  void finish_kernel(const NodeItem& item, Tensor* outputs);
  inline void pass_on(const NodeItem& item, const PortItem& port,
                      Observed observed);
  inline void drop_input(const NodeItem& item, uint32_t i);
  inline void consume_inputs(const NodeItem& item);
  inline Tensor take_input(const NodeItem& item, uint32_t i);
  void fail(Status status, const graph::Node& node);
  Location location() const { return frame_.location(tag_); }

  inline void send_port(const PortItem& port, Tensor&& value);
  inline void send_control(const PortItem& port);
  inline void send_dead_edge(const EdgeItem& edge);
  inline void send_dead(const PortItem& port);
  inline Token& add_token(Batch*& batch, BatchKind kind, const EdgeItem& edge);
  inline void send_edge(const EdgeItem& edge, Tensor&& value);
  void send_to_many(const PortItem& port, Tensor&& value);
  void send_copies(const EdgeItem* edge, const EdgeItem* end,
                   const Tensor& value);
  void send_dead_to_many(const PortItem& port);
  void send_control_to_many(const PortItem& port);
  // Adds an output with very many edges to `wide_`, from edge `first` on.
  void send_in_parts(const PortItem& port, uint32_t first, bool is_dead,
                     Tensor&& value);
  void send_part();
  void send_elsewhere(const EdgeItem& edge, Tensor&& value);
  void send_copy(const EdgeItem& edge, const Tensor& value);
  void send_dead_elsewhere(const EdgeItem& edge);

  void request_kernel(uint32_t node);
  void request_copy(uint32_t node, KernelRequest::Work work, Tensor&& value);
  KernelRequest* take_request(uint32_t node);
  KernelRequest* take_kernel_request(uint32_t node);
  void add_to_requests(KernelRequest* request);
  static bool frees_memory(const KernelRequest& request);
  void take_copy(uint32_t node, Tensor&& value);
  bool must_copy_in(const Tensor& value) const;
  void give_request(KernelRequest* request);

  const FrameInstance& frame_;
  BatchPool& pool_;
  EngineActor* const owner_;
  const FramePlan& plan_;
  // The plan's arrays, for faster access.
  const NodeItem* const nodes_;
  const PortItem* const ports_;
  const EdgeItem* const edges_;
  const ArrivalItem* const arrivals_;
  // Copies from the frame instance, set by begin().
  bool watched_ = false;
  Observer* observer_ = nullptr;
  TraceBuffer* trace_ = nullptr;  // the thread's, while it handles a batch
  IterationState state_;
  int64_t iteration_ = -1;
  devices::Tag tag_;
  Step* step_ = nullptr;
  std::vector<uint8_t> child_live_;
  int outstanding_ = 0;  // live child frames, and kernels and Recvs elsewhere
  uint32_t fired_ = 0;   // nodes of this iteration, skipped ones included
  const ConstSet* constants_ = nullptr;
  uint64_t loaded_epoch_ = 0;  // of the constants in the slots
  bool holds_values_ = false;  // after the end of an iteration
  Outbox out_;
  // Ready nodes that are worth a hop. Each element of `wide_` has an entry
  // kWideSends, so that only one list must be checked.
  static constexpr uint32_t kWideSends = ~0u;
  std::vector<uint32_t> heavy_;
  // An output with so many consumers that it is sent in parts: to serve a
  // million consumers takes longer than a time slice.
  struct WideSend {
    const EdgeItem* next;
    const EdgeItem* end;
    bool is_dead;
    Tensor value;
  };
  std::vector<WideSend> wide_;
  std::vector<Tensor> outputs_;  // of the firing kernel
  // By arrival; used by the constant edges.
  std::vector<const Token*> constant_at_;
  Tensor passing_;  // on its way from a node to its edges; else empty
  std::vector<std::unique_ptr<KernelRequest>> requests_;
  std::vector<KernelRequest*> free_requests_;
  Counters counters_;
};

}  // namespace tagflow::actors
