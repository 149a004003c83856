// The inner loop: the tokens that come to one iteration, and its ready nodes,
// fired to completion. All that a token passes on the common way is in this
// file, and inlined by force: the compiler, left alone, calls functions for a
// few instructions each, which made every token half again as expensive.
#include "actors/frame_actor.h"
#include "actors/iteration_actor.h"
#include "actors/observer.h"
#include "devices/rendezvous.h"

namespace tagflow::actors {
namespace {

// A kernel that takes longer than this is worth a hop to another worker, whose
// waking costs 5-10 us.
constexpr double kHeavyNanoseconds = 20e3;
// How many nodes fire between two looks at the abort flag.
constexpr uint32_t kFiringsPerCheck = 256;

}  // namespace

// --- Edges ------------------------------------------------------------------

// A live token for the edge's arrival, in the batch that will take it there.
[[gnu::always_inline]] inline Token& IterationActor::add_token(
    Batch*& batch, BatchKind kind, const EdgeItem& edge) {
  if (batch == nullptr) batch = take_batch(kind);
  return batch->tokens.add(edge.target);
}

// The edges that send_edge() leaves to it. The value is gone afterwards, as
// with all that send one.
void IterationActor::send_elsewhere(const EdgeItem& edge, Tensor&& value) {
  switch (edge.kind) {
    case EdgeKind::kInput:
    case EdgeKind::kControl:
    case EdgeKind::kLiveControl:
    case EdgeKind::kNext:
      break;
    case EdgeKind::kMergeInput:
      state_.merge_live(edge.target, edge.slot, std::move(value));
      break;
    case EdgeKind::kEnter:
      add_token(out_enter_[edge.slot], BatchKind::kEnter, edge)
          .value.take(value);
      break;
    case EdgeKind::kExit:
      add_token(out_exit_, BatchKind::kExit, edge).value.take(value);
      break;
    case EdgeKind::kFetch: {
      FetchSlot& fetch = step_->fetches[edge.target];
      fetch.value = std::move(value);
      fetch.state = FetchSlot::kLive;
      break;
    }
  }
}

void IterationActor::send_dead_elsewhere(const EdgeItem& edge) {
  switch (edge.kind) {
    case EdgeKind::kControl:
      state_.arrive_dead(edge.target);
      break;
    case EdgeKind::kLiveControl:
      state_.arrive(edge.target);
      break;
    case EdgeKind::kMergeInput:
      state_.merge_dead(edge.target);
      break;
    case EdgeKind::kEnter:
      add_token(out_enter_[edge.slot], BatchKind::kEnter, edge).is_dead = true;
      break;
    case EdgeKind::kInput:
    case EdgeKind::kNext:
    case EdgeKind::kExit:
      break;
    case EdgeKind::kFetch:
      step_->fetches[edge.target].state = FetchSlot::kDead;
      break;
  }
}

// What most edges are comes first; send_elsewhere() has the rest.
[[gnu::always_inline]] inline void IterationActor::send_edge(
    const EdgeItem& edge, Tensor&& value) {
  if (edge.kind == EdgeKind::kInput) [[likely]] {
    state_.slot(edge.slot).take(value);
    state_.arrive(edge.target);
  } else if (edge.kind == EdgeKind::kNext) {
    add_token(out_next_, BatchKind::kTokens, edge).value.take(value);
  } else if (is_control(edge.kind)) {
    value.reset();
    state_.arrive(edge.target);
  } else {
    send_elsewhere(edge, std::move(value));
  }
}

// Apart, so that the caller has no tensor of its own to destroy.
void IterationActor::send_copy(const EdgeItem& edge, const Tensor& value) {
  send_edge(edge, Tensor(value));
}

// The last edge takes the value, the others copies of it.
void IterationActor::send_to_many(const PortItem& port, Tensor&& value) {
  const EdgeItem* edge = edges_ + port.begin;
  const EdgeItem* const last = edge + port.count - 1;
  {
    IterationState::Arrivals arrivals(state_);
    for (; edge != last && is_control(edge->kind); ++edge)
      arrivals.add(edge->target);
    for (; edge != last && edge->kind == EdgeKind::kInput; ++edge)
      arrivals.add(edge->target, edge->slot, value);
  }
  for (; edge != last; ++edge) send_copy(*edge, value);
  send_edge(*last, std::move(value));
}

[[gnu::always_inline]] inline void IterationActor::send_port(
    const PortItem& port, Tensor&& value) {
  if (port.count == 1) [[likely]] {
    send_edge(port.first, std::move(value));
  } else if (port.count > 1) {
    send_to_many(port, std::move(value));
  } else {
    value.reset();
  }
}

// A dead NextIteration starts nothing; a dead Exit is one that was not live,
// which the frame knows when it ends.
[[gnu::always_inline]] inline void IterationActor::send_dead_edge(
    const EdgeItem& edge) {
  if (edge.kind == EdgeKind::kInput) [[likely]] {
    state_.arrive_dead(edge.target);
  } else if (edge.kind != EdgeKind::kNext && edge.kind != EdgeKind::kExit) {
    send_dead_elsewhere(edge);
  }
}

[[gnu::always_inline]] inline void IterationActor::send_dead(
    const PortItem& port) {
  if (port.count == 0) return;
  send_dead_edge(port.first);
  for (uint32_t i = 1; i < port.count; ++i)
    send_dead_edge(edges_[port.begin + i]);
}

inline void IterationActor::send_control(const PortItem& port) {
  for (uint32_t i = 0; i < port.count; ++i)
    state_.arrive(edges_[port.begin + i].target);
}

[[gnu::always_inline]] inline void IterationActor::arrive(uint32_t arrival,
                                                          bool is_dead,
                                                          Tensor&& value) {
  const ArrivalItem& item = arrivals_[arrival];
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_arrive(place(), *item.node, value, is_dead);
  if (is_dead) [[unlikely]] {
    send_dead(item.edges);
  } else {
    send_port(item.edges, std::move(value));
  }
}

// --- Batches ----------------------------------------------------------------

void IterationActor::take_tokens(Batch* batch) {
  if (batch->kind == BatchKind::kTokens) {
    if (batch->constants != constants_) take_constants(batch->constants);
    ++received_;
    if (batch->final) {
      expected_ = batch->count;
      exits_ += batch->exits;
    }
    predecessor_done_ = received_ == expected_;
  }
  for (Token& token : batch->tokens)
    arrive(token.arrival, token.is_dead, std::move(token.value));
  pool().give(batch);
}

// A loop constant that came late: the rest of the new set is what this
// iteration has not seen.
void IterationActor::take_constants(const ConstSet* constants) {
  const size_t known = constants_ == nullptr ? 0 : constants_->tokens.size();
  if (constants == nullptr || constants->tokens.size() <= known) return;
  constants_ = constants;
  for (size_t i = known; i < constants->tokens.size(); ++i)
    arrive_constant(constants->tokens[i]);
}

// Its slot keeps the value, as that of any loop constant.
void IterationActor::arrive_constant(const Token& token) {
  holds_values_ = holds_values_ || token.value.buffer() != nullptr;
  arrive(token.arrival, token.is_dead, Tensor(token.value));
}

// --- Nodes ------------------------------------------------------------------

inline void IterationActor::drop_input(const NodeItem& item, uint32_t i) {
  Tensor& slot = state_.slot(item.first_slot + i);
  if (slot.buffer() == nullptr) return;
  if (item.has_constant_inputs && plan_.sticky[item.first_slot + i]) return;
  slot.reset();
}

inline void IterationActor::consume_inputs(const NodeItem& item) {
  for (uint32_t i = 0; i < item.num_inputs; ++i) drop_input(item, i);
}

inline Tensor IterationActor::take_input(const NodeItem& item, uint32_t i) {
  Tensor& slot = state_.slot(item.first_slot + i);
  if (item.has_constant_inputs && plan_.sticky[item.first_slot + i])
    return slot;
  return std::move(slot);
}

// A kernel on scalars that are held in their tokens has nothing to allocate,
// to share or to let go of. False where this is another case.
[[gnu::always_inline]] inline bool IterationActor::fire_scalar(
    const NodeItem& item) {
  if (!item.scalar(state_.slots() + item.first_slot, passing_)) return false;
  send_port(item.edges, std::move(passing_));
  return true;
}

// What fires most comes first; fire_other() has the rest.
[[gnu::always_inline]] inline void IterationActor::fire(uint32_t node) {
  const NodeItem& item = nodes_[node];
  uint32_t& word = state_.pending(node);
  const uint32_t facts = std::exchange(word, word | IterationState::kFired);
  if (facts & IterationState::kDead) {
    if (item.kind < NodeKind::kSend) return skip(item);
  } else if (item.kind == NodeKind::kKernel) {
    if (item.scalar != nullptr && fire_scalar(item)) return;
  } else if (item.kind == NodeKind::kSwitch) {
    return fire_switch(item, word, Observed::kNo);
  } else if (item.kind == NodeKind::kForward) {
    return pass_on(item, item.edges, Observed::kNo);
  }
  fire_other(node, (facts & IterationState::kDead) != 0);
}

void IterationActor::fire_observed(uint32_t node) {
  uint32_t& word = state_.pending(node);
  const bool is_dead = (word & IterationState::kDead) != 0;
  word |= IterationState::kFired;
  observer_->on_fire(place(), *nodes_[node].node, is_dead);
  fire_other(node, is_dead);
  observer_->on_settle(place(), IterationView(plan_, state_));
}

// What is observed, and what fire() leaves to it, which has passed on what a
// Switch and a forwarding node have.
void IterationActor::fire_other(uint32_t node, bool is_dead) {
  const NodeItem& item = nodes_[node];
  if (is_dead) {
    // Transfers run dead or alive, so that the other side hears of it.
    if (item.kind == NodeKind::kSend) {
      fire_send(item, true);
    } else if (item.kind == NodeKind::kRecv) {
      fire_recv(node, item);
    } else {
      skip(item);
    }
    return;
  }
  switch (item.kind) {
    case NodeKind::kKernel:
      if (item.may_be_expensive && defer_if_heavy(node, item)) return;
      fire_kernel(item);
      break;
    case NodeKind::kSwitch:
      fire_switch(item, state_.pending(node), Observed::kYes);
      break;
    case NodeKind::kSwitchN:
      fire_switch_n(item, state_.pending(node));
      break;
    case NodeKind::kMerge:
      fire_merge(item);
      break;
    case NodeKind::kCall:
      fire_call(item);
      break;
    case NodeKind::kForward:
      pass_on(item, item.edges, Observed::kYes);
      break;
    case NodeKind::kTrigger:
      send_control(ports_[item.first_port]);
      break;
    case NodeKind::kAsync:
      fire_async(node, item);
      break;
    case NodeKind::kSend:
      fire_send(item, false);
      break;
    case NodeKind::kRecv:
      fire_recv(node, item);
      break;
  }
}

[[gnu::always_inline]] inline void IterationActor::skip(const NodeItem& item) {
  ++counters_.dead;
  if (item.may_hold_when_dead) consume_inputs(item);
  send_dead(item.edges);
}

// Sends the first input on through `port`, out of its slot where that need not
// keep it.
[[gnu::always_inline]] inline void IterationActor::pass_on(const NodeItem& item,
                                                           const PortItem& port,
                                                           Observed observed) {
  Tensor& value = state_.slot(item.first_slot);
  if (observed == Observed::kYes)
    observer_->on_fired(place(), *item.node, {&value, 1});
  if (item.has_constant_inputs && plan_.sticky[item.first_slot]) [[unlikely]] {
    passing_ = value;
    send_port(port, std::move(passing_));
  } else {
    send_port(port, std::move(value));
  }
}

// A predicate that is no scalar held in its token. None after an error.
std::optional<bool> IterationActor::read_predicate(const NodeItem& item) {
  const Tensor& predicate = state_.slot(item.first_slot + 1);
  if (predicate.dtype() != DataType::kBool || predicate.num_elements() != 1) {
    fail(invalid_argument("[Switch] the predicate must be one bool, not {}",
                          predicate.describe()),
         *item.node);
    return std::nullopt;
  }
  const bool taken = predicate.scalar_value<bool>();
  drop_input(item, 1);
  return taken;
}

[[gnu::always_inline]] inline void IterationActor::fire_switch(
    const NodeItem& item, uint32_t& word, Observed observed) {
  const Tensor& predicate = state_.slot(item.first_slot + 1);
  bool taken;
  if (predicate.is_inline_scalar(DataType::kBool)) [[likely]] {
    taken = *predicate.inline_data<bool>();
  } else {
    const std::optional<bool> read = read_predicate(item);
    if (!read) return;
    taken = *read;
  }
  if (taken) word |= IterationState::kTaken;
  const PortItem* const ports = ports_ + item.first_port;
  pass_on(item, ports[taken ? 1 : 0], observed);
  send_dead(ports[taken ? 0 : 1]);
  send_control(ports[2]);
}

// An index that is out of range means the last output. The one that was taken
// is noted in the word, whose count nobody needs any more.
void IterationActor::fire_switch_n(const NodeItem& item, uint32_t& word) {
  const Tensor& index = state_.slot(item.first_slot + 1);
  if (index.dtype() != DataType::kInt32 || index.num_elements() != 1) {
    fail(invalid_argument("[_SwitchN] the index must be one int32, not {}",
                          index.describe()),
         *item.node);
    return;
  }
  const int32_t wanted = index.scalar_value<int32_t>();
  drop_input(item, 1);
  const auto last = uint32_t(item.num_outputs - 1);
  const uint32_t taken =
      wanted < 0 || uint32_t(wanted) > last ? last : uint32_t(wanted);
  word |= taken & IterationState::kCount;
  const PortItem* const ports = ports_ + item.first_port;
  pass_on(item, ports[taken],
          observer_ != nullptr ? Observed::kYes : Observed::kNo);
  for (uint32_t i = 0; i <= last; ++i)
    if (i != taken) send_dead(ports[i]);
  send_control(ports[item.num_outputs]);
}

// The node's outputs come when the frame of the call sends them.
void IterationActor::fire_call(const NodeItem& item) {
  Batch*& batch = out_enter_[item.ordinal];
  batch = take_batch(BatchKind::kEnter);
  for (uint32_t i = 0; i < item.num_inputs; ++i)
    batch->tokens.add(i).value = take_input(item, i);
}

void IterationActor::fire_merge(const NodeItem& item) {
  Tensor outputs[2] = {
      std::move(state_.slot(item.first_slot)),
      Tensor::scalar(state_.merge(item.ordinal).index),
  };
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_fired(place(), *item.node, outputs);
  send_port(ports_[item.first_port], std::move(outputs[0]));
  send_port(ports_[item.first_port + 1], std::move(outputs[1]));
  send_control(ports_[item.first_port + 2]);
}

void IterationActor::fire_kernel(const NodeItem& item) {
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_);
  Status status = run_kernel(*item.kernel, context);
  if (!status.ok()) [[unlikely]] {
    fail(std::move(status), *item.node);
    return;
  }
  consume_inputs(item);
  finish_kernel(item, outputs_.data());
}

void IterationActor::finish_kernel(const NodeItem& item, Tensor* outputs) {
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_fired(place(), *item.node, {outputs, item.num_outputs});
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].valid()) [[unlikely]] {
      fail(error(Code::kInternal, "[{}] the kernel did not set output {}",
                 item.node->op(), i),
           *item.node);
      return;
    }
    send_port(ports_[item.first_port + i], std::move(outputs[i]));
  }
  send_control(ports_[item.first_port + item.num_outputs]);
}

void IterationActor::run_ready(Runner& runner) {
  if (observer_ != nullptr) [[unlikely]]
    return run_ready_observed(runner);
  for (;;) {
    uint32_t fired = 0;
    while (state_.has_ready()) {
      fire(state_.pop_ready());
      if (++fired % kFiringsPerCheck == 0) {
        step_->check_deadline();
        if (step_->cancelled()) break;
      }
    }
    fired_ += fired;
    counters_.fired += fired;
    if (heavy_.empty() || step_->cancelled()) return;
    run_heavy(runner);
  }
}

// Looks at the abort flag after each firing: what is seen ends with an error.
void IterationActor::run_ready_observed(Runner& runner) {
  for (;;) {
    observer_->on_settle(place(), IterationView(plan_, state_));
    while (state_.has_ready() && !step_->cancelled()) {
      fire_observed(state_.pop_ready());
      ++counters_.fired;
      if (++fired_ % kFiringsPerCheck == 0) step_->check_deadline();
    }
    if (heavy_.empty() || step_->cancelled()) break;
    run_heavy(runner);
  }
  observer_->on_pause(place());
}

void IterationActor::fail(Status status, const graph::Node& node) {
  const std::string where =
      plan_.name.empty()
          ? std::string()
          : fmt::format(", frame \"{}\" iteration {}", plan_.name, iteration_);
  const Code code = status.code();
  step_->fail(Status(
      code, fmt::format("{} (node \"{}\"{}, device {})", status.message(),
                        node.name(), where, frame_.run->plan->device)));
}

// --- Kernels elsewhere ------------------------------------------------------

KernelRequest* IterationActor::take_request(uint32_t node) {
  if (free_requests_.empty()) {
    requests_.push_back(std::make_unique<KernelRequest>());
    free_requests_.push_back(requests_.back().get());
  }
  KernelRequest* request = free_requests_.back();
  free_requests_.pop_back();
  const NodeItem& item = nodes_[node];
  request->node = node;
  request->open = true;
  request->item = &item;
  request->owner = this;
  request->tag = tag_;
  for (uint32_t i = 0; i < item.num_inputs; ++i)
    request->inputs.push_back(take_input(item, i));
  request->outputs.resize(item.num_outputs);
  request->context.emplace(item.node, request->inputs, request->outputs,
                           &step_->info, &request->tag);
  request->is_dead = false;
  request->met.store(false, std::memory_order_relaxed);
  request->batch.step = step_;
  request->batch.iteration = iteration_;
  return request;
}

void IterationActor::give_request(KernelRequest* request) {
  request->inputs.clear();
  request->outputs.clear();
  request->status = Status();
  request->open = false;
  free_requests_.push_back(request);
}

void IterationActor::take_kernel(KernelRequest* request) {
  --outstanding_;
  const NodeItem& item = *request->item;
  if (!request->status.ok()) {
    fail(std::move(request->status), *item.node);
  } else if (request->is_dead) {
    skip(item);
  } else {
    finish_kernel(item, request->outputs.data());
  }
  give_request(request);
}

bool IterationActor::defer_if_heavy(uint32_t node, const NodeItem& item) {
  if (item.only_if_large) {
    bool large = false;
    for (uint32_t i = 0; i < item.num_inputs; ++i)
      large = large || state_.slot(item.first_slot + i).buffer() != nullptr;
    if (!large) return false;
  }
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_);
  if (item.kernel->cost(context) < kHeavyNanoseconds) return false;
  heavy_.push_back(node);
  return true;
}

// Everything cheap is done. What other actors can do meanwhile goes to them
// first; then all heavy kernels but one go to the lanes, and that one runs
// here. A lent thread keeps none: its owner may have to leave in time.
void IterationActor::run_heavy(Runner& runner) {
  post_enters(runner);
  post_exits(runner);
  if (frame_.window > 1) post_next(runner, false);
  const size_t keep = runner.lent() ? 0 : 1;
  const bool share = frame_.run->workers > 1 || runner.lent();
  while (share && heavy_.size() > keep) {
    KernelRequest* request = take_request(heavy_.back());
    heavy_.pop_back();
    ++outstanding_;
    ++counters_.offloaded;
    runner.post(frame_.run->device, &request->batch);
  }
  // Others run from here on: this handler needs a unit of its own.
  runner.renew(step_);
  runner.flush();
  if (heavy_.empty()) return;
  const uint32_t node = heavy_.back();
  heavy_.pop_back();
  if (observer_ != nullptr) observer_->on_compute(place(), *nodes_[node].node);
  fire_kernel(nodes_[node]);
  if (observer_ != nullptr) observer_->on_computed(place(), *nodes_[node].node);
}

void IterationActor::fire_async(uint32_t node, const NodeItem& item) {
  KernelRequest* request = take_request(node);
  ++outstanding_;
  step_->add_activity();
  const auto* kernel = static_cast<const devices::AsyncKernel*>(item.kernel);
  const auto answer = [request](Status status) {
    request->status = std::move(status);
    request->owner->deliver(&request->batch, nullptr);
  };
  try {
    kernel->compute_async(*request->context, answer);
  } catch (const std::exception& thrown) {
    // It threw before it could promise to call `answer`.
    answer(
        status_of(thrown).with_prefix(fmt::format("[{}] ", item.node->op())));
  }
}

void IterationActor::fire_send(const NodeItem& item, bool is_dead) {
  devices::Transfer transfer;
  transfer.is_dead = is_dead;
  if (is_dead) {
    consume_inputs(item);
  } else {
    transfer.value = take_input(item, 0);
  }
  const devices::TransferKey key{frame_.run->plan->transfers[item.ordinal],
                                 tag_};
  Status status = step_->info.rendezvous->send(key, std::move(transfer));
  if (!status.ok()) {
    fail(std::move(status), *item.node);
  } else {
    send_control(ports_[item.first_port]);
  }
}

void IterationActor::fire_recv(uint32_t node, const NodeItem& item) {
  KernelRequest* request = take_request(node);
  const devices::TransferKey key{frame_.run->plan->transfers[item.ordinal],
                                 tag_};
  ++outstanding_;
  step_->info.rendezvous->receive(
      key, [request](Result<devices::Transfer> transfer) {
        if (transfer.ok()) {
          request->is_dead = transfer->is_dead;
          request->outputs[0] = std::move(transfer->value);
        } else {
          request->status = std::move(transfer).status();
        }
        if (request->met.exchange(true, std::memory_order_acq_rel)) {
          request->batch.step->add_activity();
          request->owner->deliver(&request->batch, nullptr);
        }
      });
  if (request->met.exchange(true, std::memory_order_acq_rel))
    take_kernel(request);
}

}  // namespace tagflow::actors
