// The inner loop: the tokens that come to one iteration, and its ready nodes,
// fired to completion. The common way of a token is in token_path.h; here is
// what it leaves.
#include <algorithm>

#include "actors/observer.h"
#include "actors/token_path.h"
#include "devices/guard.h"

namespace tagflow::actors {

// --- Edges ------------------------------------------------------------------

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

// Apart, so that the caller has no tensor of its own to destroy.
void IterationActor::send_copy(const EdgeItem& edge, const Tensor& value) {
  send_edge(edge, Tensor(value));
}

[[gnu::always_inline]] inline void IterationActor::send_copies(
    const EdgeItem* edge, const EdgeItem* end, const Tensor& value) {
  {
    IterationState::Arrivals arrivals(state_);
    for (; edge != end && is_control(edge->kind); ++edge)
      arrivals.add(edge->target);
    for (; edge != end && edge->kind == EdgeKind::kInput; ++edge)
      arrivals.add(edge->target, edge->slot, value);
  }
  for (; edge != end; ++edge) send_copy(*edge, value);
}

// The last edge takes the value, the others copies of it.
void IterationActor::send_to_many(const PortItem& port, Tensor&& value) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 0, false, std::move(value));
  const EdgeItem* const last = edges_ + port.begin + port.count - 1;
  send_copies(edges_ + port.begin, last, value);
  send_edge(*last, std::move(value));
}

// The first edge was served by the caller, of these two.
void IterationActor::send_dead_to_many(const PortItem& port) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 1, true, {});
  for (uint32_t i = 1; i < port.count; ++i)
    send_dead_edge(edges_[port.begin + i]);
}

void IterationActor::send_control_to_many(const PortItem& port) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 1, false, {});
  for (uint32_t i = 1; i < port.count; ++i)
    state_.arrive(edges_[port.begin + i].target);
}

void IterationActor::send_in_parts(const PortItem& port, uint32_t first,
                                   bool is_dead, Tensor&& value) {
  const EdgeItem* const begin = edges_ + port.begin;
  wide_.push_back(
      {begin + first, begin + port.count, is_dead, std::move(value)});
  heavy_.push_back(kWideSends);
}

void IterationActor::send_part() {
  WideSend& send = wide_.back();
  const EdgeItem* const end =
      send.next + std::min<ptrdiff_t>(send.end - send.next, kEdgesPerCheck);
  if (send.is_dead) {
    for (; send.next != end; ++send.next) send_dead_edge(*send.next);
  } else {
    send_copies(std::exchange(send.next, end), end, send.value);
  }
  if (send.next != send.end) return;
  wide_.pop_back();
  heavy_.erase(std::ranges::find(heavy_, kWideSends));
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
  batch->tokens.clear_taken();
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

// What is observed, and what fire() leaves to it, which has passed on what a
// Switch and a forwarding node have.
void IterationActor::fire_other(uint32_t node, bool is_dead) {
  const NodeItem& item = nodes_[node];
  if (is_dead) {
    // Transfers run dead or alive, so that the other side hears of it.
    if (item.kind == NodeKind::kSend) {
      consume_inputs(item);
      send_transfer(item, true, {});
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
      fire_kernel(node, item);
      break;
    case NodeKind::kState:
      if (item.may_be_expensive && defer_if_heavy(node, item)) return;
      fire_kernel(node, item);
      break;
    case NodeKind::kSwitch:
      fire_switch(node, Observed::kYes);
      break;
    case NodeKind::kSwitchN:
      fire_switch_n(node);
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
    case NodeKind::kLaunch:
      // What is in tokens is the host's: bookkeeping needs no launch.
      if (item.scalar != nullptr &&
          item.scalar(state_.slots() + item.first_slot, outputs_[0])) {
        finish_kernel(item, outputs_.data());
      } else {
        request_kernel(node);
      }
      break;
    case NodeKind::kSend:
      fire_send(node, item);
      break;
    case NodeKind::kRecv:
      fire_recv(node, item);
      break;
  }
}

// A predicate that is no scalar held in its token. None after an error, and
// where it is on its way from the device.
std::optional<bool> IterationActor::read_predicate(uint32_t node) {
  const NodeItem& item = nodes_[node];
  const Tensor& predicate = state_.slot(item.first_slot + 1);
  if (predicate.dtype() != DataType::kBool || !predicate.is_scalar()) {
    fail(
        invalid_argument("[Switch] the predicate must be a scalar bool, not {}",
                         predicate.describe()),
        *item.node);
    return std::nullopt;
  }
  if (fetch_chooser(node)) return std::nullopt;
  const bool taken = predicate.scalar_value<bool>();
  drop_input(item, 1);
  return taken;
}

// An index that is out of range means the last output. The one that was taken
// is noted in the word, whose count nobody needs any more.
void IterationActor::fire_switch_n(uint32_t node) {
  const NodeItem& item = nodes_[node];
  const Tensor& index = state_.slot(item.first_slot + 1);
  if (index.dtype() != DataType::kInt32 || !index.is_scalar()) {
    fail(invalid_argument("[_SwitchN] the index must be a scalar int32, not {}",
                          index.describe()),
         *item.node);
    return;
  }
  if (fetch_chooser(node)) return;
  const int32_t wanted = index.scalar_value<int32_t>();
  drop_input(item, 1);
  const auto last = uint32_t(item.num_outputs - 1);
  const uint32_t taken =
      wanted < 0 || uint32_t(wanted) > last ? last : uint32_t(wanted);
  state_.pending(node) |= taken & IterationState::kCount;
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

void IterationActor::fire_kernel(uint32_t node, const NodeItem& item) {
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_,
      frame_.run->allocator);
  Status status;
  if (item.kind == NodeKind::kState) {
    devices::StateClaim claim;
    std::optional<Status> computed = devices::try_state_kernel(
        static_cast<const devices::StateKernel&>(*item.kernel), context, claim);
    if (!computed) return park(node, std::move(claim));
    status = *std::move(computed);
  } else {
    status = devices::run_kernel(*item.kernel, context);
  }
  if (!status.ok()) [[unlikely]] {
    fail(std::move(status), *item.node);
    return;
  }
  consume_inputs(item);
  finish_kernel(item, outputs_.data());
}

namespace {

Status wrong_output(const graph::Node& node, uint32_t i, const Tensor& value) {
  if (!value.valid())
    return error(Code::kInternal, "[{}] the kernel did not set output {}",
                 node.op(), i);
  return error(Code::kInternal,
               "[{}] the kernel set output {} to a tensor of type {}, but the "
               "op declares {}",
               node.op(), i, dtype_name(value.dtype()),
               dtype_name(remove_ref(node.output_dtypes()[i])));
}

// What travels along an edge of references: the handle of a variable, or a
// value that nobody can change, as the name of a stack.
bool is_reference(const Tensor& value, DataType declared) {
  return is_ref(declared) && (value.dtype() == DataType::kResource ||
                              value.dtype() == remove_ref(declared));
}

}  // namespace

void IterationActor::finish_kernel(const NodeItem& item, Tensor* outputs) {
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_fired(place(), *item.node, {outputs, item.num_outputs});
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    const DataType declared = item.node->output_dtypes()[i];
    if (outputs[i].dtype() != declared && !is_reference(outputs[i], declared))
        [[unlikely]]
      return fail(wrong_output(*item.node, i, outputs[i]), *item.node);
    send_port(ports_[item.first_port + i], std::move(outputs[i]));
  }
  send_control(ports_[item.first_port + item.num_outputs]);
}

void IterationActor::run_ready(Runner& runner) {
  if (watched_) [[unlikely]]
    return observer_ != nullptr ? run_ready_observed(runner)
                                : run_ready_traced(runner);
  do {
    fire_ready(runner, [this](uint32_t node) { fire(node); });
  } while (goes_on(runner));
}

// After what was ready: a part of what goes to very many, or a heavy kernel,
// and again, until nothing is left, or others are to have the thread.
bool IterationActor::goes_on(Runner& runner) {
  if (heavy_.empty()) [[likely]]
    return false;
  if (step_->cancelled() || state_.has_ready()) return false;
  if (!wide_.empty()) {
    send_part();
  } else {
    run_heavy(runner);
  }
  return !runner.must_yield();
}

void IterationActor::fail(Status status, const graph::Node& node) {
  const std::string where =
      plan_.name.empty()
          ? std::string()
          : fmt::format(", frame \"{}\" iteration {}", plan_.name, iteration_);
  const Code code = status.code();
  step_->fail(Status(
      code, fmt::format("{} (node \"{}\"{}, device {})", status.message(),
                        node.name(), where, frame_.run->plan->device_label)));
}

}  // namespace tagflow::actors
