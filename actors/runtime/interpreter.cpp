// The inner loop: takes the tokens of one iteration, and fires its ready nodes
// until none is left. The common path of a token is in token_path.h; the other
// cases are here. Kernels that run elsewhere than they fire are in
// interpreter_requests.cpp, observed and traced runs in
// interpreter_watched.cpp.
#include <algorithm>

#include "actors/runtime/tag_text.h"
#include "actors/runtime/token_path.h"
#include "actors/watch/observer.h"
#include "devices/state/guard.h"

namespace tagflow::actors {

Interpreter::Interpreter(const FrameInstance& frame, BatchPool& pool,
                         EngineActor* owner)
    : frame_(frame),
      pool_(pool),
      owner_(owner),
      plan_(*frame.plan),
      nodes_(plan_.nodes.data()),
      ports_(plan_.ports.data()),
      edges_(plan_.edges.data()),
      arrivals_(plan_.arrivals.data()),
      state_(*frame.plan),
      child_live_(plan_.children.size()),
      outputs_(plan_.max_outputs),
      constant_at_(plan_.constant_edges.empty() ? 0 : plan_.arrivals.size()) {
  out_.enter.resize(plan_.children.size());
}

// --- The iteration ----------------------------------------------------------

void Interpreter::release_values() {
  if (!holds_values_) return;
  state_.release_values();
  holds_values_ = false;
  loaded_epoch_ = 0;
}

void Interpreter::reset() {
  for (Batch** batch : {&out_.next, &out_.exit, &out_.transfers})
    BatchStore::free(std::exchange(*batch, nullptr));
  for (Batch*& batch : out_.enter)
    BatchStore::free(std::exchange(batch, nullptr));
  out_.first_request = out_.last_request = nullptr;
  holds_values_ = true;
  release_values();
  state_.forget();
  for (Tensor& output : outputs_) output.reset();
  passing_.reset();
  heavy_.clear();
  wide_.clear();
  free_requests_.clear();
  for (const auto& request : requests_) give_request(request.get());
  std::ranges::fill(child_live_, uint8_t(0));
  outstanding_ = 0;
}

bool Interpreter::awaits(uint32_t node) const {
  const NodeItem& item = nodes_[node];
  const uint32_t word = state_.pending(node);
  if (item.kind == NodeKind::kCall) return child_live(item.ordinal);
  if (item.kind == NodeKind::kRecv)
    return (word & IterationState::kFired) != 0 &&
           (word & IterationState::kTaken) == 0;
  return (word & IterationState::kAsked) != 0;
}

std::string_view Interpreter::reason_at_stop(uint32_t node) const {
  for (const auto& request : requests_)
    if (request->node == node && !request->wait.at_stop.empty())
      return request->wait.at_stop;
  return {};
}

// --- Calls and child frames -------------------------------------------------

void Interpreter::take_result(uint32_t node, Token& token) {
  const NodeItem& item = nodes_[node];
  if (observer_ != nullptr)
    observer_->on_arrive(location(), *item.node, token.value, token.is_dead);
  if (trace_ != nullptr) trace_->add(TraceBuffer::kResult, node);
  const PortItem& port = ports_[item.first_port + token.slot];
  if (token.is_dead) {
    send_dead(port);
  } else {
    send_port(port, std::move(token.value));
  }
}

void Interpreter::end_call(uint32_t node) {
  const NodeItem& item = nodes_[node];
  send_control(ports_[item.first_port + item.num_outputs]);
}

void Interpreter::end_child(uint32_t child) {
  child_live_[child] = 0;
  --outstanding_;
  if (!plan_.child_ends.empty()) send_control(plan_.child_ends[child]);
}

// --- Edges ------------------------------------------------------------------

// Sends along the less frequent kinds of edges. The value is empty afterwards,
// as in all functions that send one.
void Interpreter::send_elsewhere(const EdgeItem& edge, Tensor&& value) {
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
      add_token(out_.enter[edge.slot], BatchKind::kEnter, edge)
          .value.take(value);
      break;
    case EdgeKind::kExit:
      add_token(out_.exit, BatchKind::kExit, edge).value.take(value);
      break;
    case EdgeKind::kFetch: {
      FetchSlot& fetch = step_->fetches[edge.target];
      fetch.value = std::move(value);
      fetch.state = FetchSlot::kLive;
      break;
    }
  }
}

void Interpreter::send_dead_elsewhere(const EdgeItem& edge) {
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
      add_token(out_.enter[edge.slot], BatchKind::kEnter, edge).is_dead = true;
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

// Not inlined, so that the caller has no tensor of its own to destroy.
void Interpreter::send_copy(const EdgeItem& edge, const Tensor& value) {
  send_edge(edge, Tensor(value));
}

[[gnu::always_inline]] inline void Interpreter::send_copies(
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
void Interpreter::send_to_many(const PortItem& port, Tensor&& value) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 0, false, std::move(value));
  const EdgeItem* const last = edges_ + port.begin + port.count - 1;
  send_copies(edges_ + port.begin, last, value);
  send_edge(*last, std::move(value));
}

// For both functions: the caller has served the first edge.
void Interpreter::send_dead_to_many(const PortItem& port) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 1, true, {});
  for (uint32_t i = 1; i < port.count; ++i)
    send_dead_edge(edges_[port.begin + i]);
}

void Interpreter::send_control_to_many(const PortItem& port) {
  if (port.count > kEdgesPerCheck) [[unlikely]]
    return send_in_parts(port, 1, false, {});
  for (uint32_t i = 1; i < port.count; ++i)
    state_.arrive(edges_[port.begin + i].target);
}

void Interpreter::send_in_parts(const PortItem& port, uint32_t first,
                                bool is_dead, Tensor&& value) {
  const EdgeItem* const begin = edges_ + port.begin;
  wide_.push_back(
      {begin + first, begin + port.count, is_dead, std::move(value)});
  heavy_.push_back(kWideSends);
}

void Interpreter::send_part() {
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

// --- Constants --------------------------------------------------------------

// Late loop constants: this iteration has not seen the rest of the new set.
void Interpreter::take_constants(const ConstSet* constants) {
  const size_t known = constants_ == nullptr ? 0 : constants_->tokens.size();
  if (constants == nullptr || constants->tokens.size() <= known) return;
  constants_ = constants;
  for (size_t i = known; i < constants->tokens.size(); ++i)
    arrive_constant(constants->tokens[i]);
}

void Interpreter::load_constants() {
  for (const Token& token : constants_->tokens) {
    const PortItem& port = arrivals_[token.slot].edges;
    for (uint32_t i = 0; i < port.count; ++i) {
      const EdgeItem& edge = edges_[port.begin + i];
      if (edge.kind == EdgeKind::kInput) state_.slot(edge.slot) = token.value;
    }
    if (!constant_at_.empty()) constant_at_[token.slot] = &token;
    holds_values_ = holds_values_ || token.value.buffer() != nullptr;
  }
  loaded_epoch_ = constants_->epoch;
}

// Its slot keeps the value, like that of any loop constant.
void Interpreter::arrive_constant(const Token& token) {
  holds_values_ = holds_values_ || token.value.buffer() != nullptr;
  arrive(token.slot, token.is_dead, Tensor(token.value));
}

// --- Nodes ------------------------------------------------------------------

// Fires observed nodes, and the less frequent kinds. fire() handles Switches
// and forwarding nodes itself.
void Interpreter::fire_other(uint32_t node, bool is_dead) {
  const NodeItem& item = nodes_[node];
  if (is_dead) {
    // Transfers run dead or alive, so that the other side gets a token.
    if (item.kind == NodeKind::kSend) {
      consume_inputs(item);
      send_transfer(node, true, {});
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
      // Values in tokens are on the host: such scalar ops need no launch.
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

// Reads a predicate that is not a scalar held in its token. None after an
// error, or while the predicate is copied from the device.
std::optional<bool> Interpreter::read_predicate(uint32_t node) {
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

// An index that is out of range means the last output. The taken output is
// stored in the count of the word, which is not needed any more.
void Interpreter::fire_switch_n(uint32_t node) {
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

// The frame of the call sends the node's outputs later.
void Interpreter::fire_call(const NodeItem& item) {
  Batch*& batch = out_.enter[item.ordinal];
  batch = take_batch(BatchKind::kEnter);
  for (uint32_t i = 0; i < item.num_inputs; ++i)
    batch->tokens.add(i).value = take_input(item, i);
}

void Interpreter::fire_merge(const NodeItem& item) {
  Tensor outputs[2] = {
      std::move(state_.slot(item.first_slot)),
      Tensor::scalar(state_.merge(item.ordinal).index),
  };
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_fired(location(), *item.node, outputs);
  send_port(ports_[item.first_port], std::move(outputs[0]));
  send_port(ports_[item.first_port + 1], std::move(outputs[1]));
  send_control(ports_[item.first_port + 2]);
}

void Interpreter::fire_kernel(uint32_t node, const NodeItem& item) {
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

// A value on an edge of references is the handle of a variable, or a value that
// nobody can change, such as the name of a stack.
bool is_reference(const Tensor& value, DataType declared) {
  return is_ref(declared) && (value.dtype() == DataType::kResource ||
                              value.dtype() == remove_ref(declared));
}

}  // namespace

void Interpreter::finish_kernel(const NodeItem& item, Tensor* outputs) {
  if (observer_ != nullptr) [[unlikely]]
    observer_->on_fired(location(), *item.node, {outputs, item.num_outputs});
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    const DataType declared = item.node->output_dtypes()[i];
    if (outputs[i].dtype() != declared && !is_reference(outputs[i], declared))
        [[unlikely]]
      return fail(wrong_output(*item.node, i, outputs[i]), *item.node);
    send_port(ports_[item.first_port + i], std::move(outputs[i]));
  }
  send_control(ports_[item.first_port + item.num_outputs]);
}

bool Interpreter::run(Runner& runner) {
  if (watched_) [[unlikely]]
    return observer_ != nullptr ? run_observed(runner) : run_traced(runner);
  do {
    fire_ready(runner, [this](uint32_t node) { fire(node); });
  } while (goes_on(runner));
  return must_run_heavy();
}

// After the ready nodes, sends the next part of a wide output, and repeats
// until nothing is left, or the thread must yield.
bool Interpreter::goes_on(Runner& runner) {
  if (heavy_.empty()) [[likely]]
    return false;
  if (step_->cancelled() || state_.has_ready() || wide_.empty()) return false;
  send_part();
  return !runner.must_yield();
}

void Interpreter::fail(Status status, const graph::Node& node) {
  const std::string where =
      plan_.is_root()
          ? std::string()
          : fmt::format(", iteration \"{}\"", tag_text(frame_, iteration_));
  const Code code = status.code();
  step_->fail(Status(
      code, fmt::format("{} (node \"{}\"{}, device {})", status.message(),
                        node.name(), where, frame_.run->plan->device_label)));
}

}  // namespace tagflow::actors
