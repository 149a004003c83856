// The inner loop: ready nodes of one iteration, fired to completion.
#include <new>

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

bool is_control(EdgeKind kind) {
  return kind == EdgeKind::kControl || kind == EdgeKind::kLiveControl;
}

}  // namespace

void IterationActor::run_ready(Runner& runner) {
  uint32_t until_check = kFiringsPerCheck;
  for (;;) {
    while (state_.has_ready()) {
      fire(state_.pop_ready());
      if (--until_check == 0) {
        until_check = kFiringsPerCheck;
        step_->check_deadline();
        if (step_->cancelled()) return;
      }
    }
    if (heavy_.empty() || step_->cancelled()) return;
    run_heavy(runner);
  }
}

// --- Edges ------------------------------------------------------------------

void IterationActor::send(const EdgeItem& edge, Tensor&& value) {
  switch (edge.kind) {
    case EdgeKind::kInput:
      state_.slot(edge.slot) = std::move(value);
      state_.arrive(edge.target);
      break;
    case EdgeKind::kControl:
    case EdgeKind::kLiveControl:
      state_.arrive(edge.target);
      break;
    case EdgeKind::kMergeInput:
      state_.merge_live(edge.target, edge.slot, std::move(value));
      break;
    case EdgeKind::kNext:
      if (out_next_ == nullptr) out_next_ = take_batch(BatchKind::kTokens);
      out_next_->tokens.push_back({edge.target, false, std::move(value)});
      break;
    case EdgeKind::kEnter: {
      Batch*& batch = out_enter_[edge.slot];
      if (batch == nullptr) batch = take_batch(BatchKind::kEnter);
      batch->tokens.push_back({edge.target, false, std::move(value)});
      break;
    }
    case EdgeKind::kExit:
      if (out_exit_ == nullptr) out_exit_ = take_batch(BatchKind::kExit);
      out_exit_->tokens.push_back({edge.target, false, std::move(value)});
      break;
    case EdgeKind::kFetch: {
      FetchSlot& fetch = step_->fetches[edge.target];
      fetch.value = std::move(value);
      fetch.state = FetchSlot::kLive;
      break;
    }
  }
}

void IterationActor::send_dead(const EdgeItem& edge) {
  switch (edge.kind) {
    case EdgeKind::kInput:
    case EdgeKind::kControl:
      state_.arrive_dead(edge.target);
      break;
    case EdgeKind::kLiveControl:
      state_.arrive(edge.target);
      break;
    case EdgeKind::kMergeInput:
      state_.merge_dead(edge.target);
      break;
    case EdgeKind::kEnter: {
      Batch*& batch = out_enter_[edge.slot];
      if (batch == nullptr) batch = take_batch(BatchKind::kEnter);
      batch->tokens.push_back({edge.target, true, Tensor()});
      break;
    }
    // A dead NextIteration starts nothing; a dead Exit is one that was not
    // live, which the frame knows when it ends.
    case EdgeKind::kNext:
    case EdgeKind::kExit:
      break;
    case EdgeKind::kFetch:
      step_->fetches[edge.target].state = FetchSlot::kDead;
      break;
  }
}

void IterationActor::send_port(const PortItem& port, Tensor&& value) {
  if (port.begin == port.end) {
    value = Tensor();
    return;
  }
  const EdgeItem* edge = &plan_.edges[port.begin];
  const EdgeItem* last = edge + (port.end - port.begin) - 1;
  for (; edge != last; ++edge) {
    if (edge->kind == EdgeKind::kInput) {
      state_.slot(edge->slot) = value;
      state_.arrive(edge->target);
    } else if (is_control(edge->kind)) {
      state_.arrive(edge->target);
    } else {
      send(*edge, Tensor(value));
    }
  }
  if (last->kind == EdgeKind::kInput) {
    state_.slot(last->slot) = std::move(value);
    state_.arrive(last->target);
  } else {
    send(*last, std::move(value));
  }
}

void IterationActor::send_dead(const PortItem& port) {
  for (uint32_t e = port.begin; e < port.end; ++e) send_dead(plan_.edges[e]);
}

void IterationActor::arrive(uint32_t arrival, bool is_dead, Tensor&& value) {
  const ArrivalItem& item = plan_.arrivals[arrival];
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_arrive(place(), *item.node, value, is_dead);
  if (is_dead) {
    send_dead(item.edges);
  } else {
    send_port(item.edges, std::move(value));
  }
}

inline void IterationActor::send_control(const PortItem& port) {
  for (uint32_t e = port.begin; e < port.end; ++e)
    state_.arrive(plan_.edges[e].target);
}

// --- Nodes ------------------------------------------------------------------

inline void IterationActor::consume_inputs(const NodeItem& item) {
  for (uint32_t i = 0; i < item.num_inputs; ++i) {
    Tensor& slot = state_.slot(item.first_slot + i);
    if (slot.buffer() == nullptr) continue;
    if (item.has_constant_inputs && plan_.sticky[item.first_slot + i]) continue;
    slot = Tensor();
  }
}

inline Tensor IterationActor::take_input(const NodeItem& item, uint32_t i) {
  Tensor& slot = state_.slot(item.first_slot + i);
  if (item.has_constant_inputs && plan_.sticky[item.first_slot + i])
    return slot;
  return std::move(slot);
}

void IterationActor::fire(uint32_t node) {
  const NodeItem& item = plan_.nodes[node];
  uint32_t& word = state_.pending(node);
  const bool is_dead = (word & IterationState::kDead) != 0;
  word |= IterationState::kFired;
  ++fired_;
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_fire(place(), *item.node, is_dead);
  if (is_dead) [[unlikely]] {
    // Transfers run dead or alive, so that the other side hears of it.
    if (item.kind == NodeKind::kSend) {
      fire_send(item, true);
    } else if (item.kind == NodeKind::kRecv) {
      fire_recv(node, item);
    } else {
      skip(node);
    }
    return;
  }
  ++counters_.fired;
  switch (item.kind) {
    case NodeKind::kKernel:
      if (item.may_be_expensive && defer_if_heavy(node, item)) return;
      fire_kernel(item);
      break;
    case NodeKind::kSwitch:
      fire_switch(node, item);
      break;
    case NodeKind::kMerge:
      fire_merge(item);
      break;
    case NodeKind::kForward:
      fire_forward(item);
      break;
    case NodeKind::kTrigger:
      send_control(plan_.ports[item.first_port]);
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

void IterationActor::skip(uint32_t node) {
  const NodeItem& item = plan_.nodes[node];
  ++counters_.dead;
  consume_inputs(item);
  // The ports of a node are neighbours, and so are their edges.
  const PortItem& first = plan_.ports[item.first_port];
  const PortItem& last = plan_.ports[item.first_port + item.num_outputs];
  send_dead(PortItem{first.begin, last.end});
}

void IterationActor::fire_forward(const NodeItem& item) {
  Tensor value = take_input(item, 0);
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_fired(place(), *item.node, {&value, 1});
  send_port(plan_.ports[item.first_port], std::move(value));
  send_control(plan_.ports[item.first_port + 1]);
}

void IterationActor::fire_switch(uint32_t node, const NodeItem& item) {
  const Tensor& predicate = state_.slot(item.first_slot + 1);
  if (predicate.num_elements() != 1 || predicate.dtype() != DataType::kBool)
      [[unlikely]] {
    fail(invalid_argument("[Switch] the predicate must be one bool, not {}",
                          predicate.describe()),
         *item.node);
    return;
  }
  const bool taken = predicate.scalar_value<bool>();
  if (taken) state_.pending(node) |= IterationState::kTaken;
  Tensor value = take_input(item, 0);
  consume_inputs(item);
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_fired(place(), *item.node, {&value, 1});
  send_port(plan_.ports[item.first_port + (taken ? 1 : 0)], std::move(value));
  send_dead(plan_.ports[item.first_port + (taken ? 0 : 1)]);
  send_control(plan_.ports[item.first_port + 2]);
}

void IterationActor::fire_merge(const NodeItem& item) {
  Tensor outputs[2] = {
      std::move(state_.slot(item.first_slot)),
      Tensor::scalar(state_.merge(item.ordinal).index),
  };
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_fired(place(), *item.node, outputs);
  send_port(plan_.ports[item.first_port], std::move(outputs[0]));
  send_port(plan_.ports[item.first_port + 1], std::move(outputs[1]));
  send_control(plan_.ports[item.first_port + 2]);
}

void IterationActor::fire_kernel(const NodeItem& item) {
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_);
  Status status = item.kernel->compute(context);
  if (!status.ok()) [[unlikely]] {
    fail(std::move(status), *item.node);
    return;
  }
  consume_inputs(item);
  finish_kernel(item, outputs_.data());
}

void IterationActor::finish_kernel(const NodeItem& item, Tensor* outputs) {
  if (frame_.observer != nullptr) [[unlikely]]
    frame_.observer->on_fired(place(), *item.node, {outputs, item.num_outputs});
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    if (!outputs[i].valid()) [[unlikely]] {
      fail(error(Code::kInternal, "[{}] the kernel did not set output {}",
                 item.node->op(), i),
           *item.node);
      return;
    }
    send_port(plan_.ports[item.first_port + i], std::move(outputs[i]));
  }
  send_control(plan_.ports[item.first_port + item.num_outputs]);
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
  const NodeItem& item = plan_.nodes[node];
  request->node = node;
  request->item = &item;
  request->owner = this;
  request->tag = tag_;
  for (uint32_t i = 0; i < item.num_inputs; ++i)
    request->inputs.push_back(take_input(item, i));
  request->outputs.resize(item.num_outputs);
  request->context.emplace(item.node, request->inputs, request->outputs,
                           &step_->info, &request->tag);
  request->status = Status();
  request->is_dead = false;
  request->met.store(false, std::memory_order_relaxed);
  request->batch.step = step_;
  request->batch.iteration = iteration_;
  return request;
}

void IterationActor::give_request(KernelRequest* request) {
  request->inputs.clear();
  request->outputs.clear();
  free_requests_.push_back(request);
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
  fire_kernel(plan_.nodes[node]);
}

void IterationActor::fire_async(uint32_t node, const NodeItem& item) {
  KernelRequest* request = take_request(node);
  ++outstanding_;
  step_->add_activity();
  const auto* kernel = static_cast<const devices::AsyncKernel*>(item.kernel);
  kernel->compute_async(*request->context, [request](Status status) {
    request->status = std::move(status);
    request->owner->deliver(&request->batch, nullptr);
  });
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
    send_control(plan_.ports[item.first_port]);
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
