// Kernels that another actor or thread runs: heavy ones, which may go to a lane
// of the device, and asynchronous ones; and transfers to other partitions.
#include <algorithm>

#include "actors/runtime/token_path.h"
#include "actors/watch/observer.h"
#include "devices/device.h"
#include "devices/state/guard.h"
#include "devices/thread_activity.h"

namespace tagflow::actors {
KernelRequest* Interpreter::take_request(uint32_t node) {
  if (free_requests_.empty()) {
    requests_.push_back(std::make_unique<KernelRequest>());
    free_requests_.push_back(requests_.back().get());
  }
  KernelRequest* request = free_requests_.back();
  free_requests_.pop_back();
  request->work = KernelRequest::Work::kCompute;
  request->after = nullptr;
  request->queue = &frame_.run->queue;
  request->node = node;
  state_.pending(node) |= IterationState::kAsked;
  request->item = &nodes_[node];
  request->owner = owner_;
  request->tag = tag_;
  request->batch.step = step_;
  request->batch.iteration = iteration_;
  ++outstanding_;
  return request;
}

KernelRequest* Interpreter::take_kernel_request(uint32_t node) {
  KernelRequest* request = take_request(node);
  const NodeItem& item = nodes_[node];
  for (uint32_t i = 0; i < item.num_inputs; ++i)
    request->inputs.push_back(take_input(item, i));
  request->outputs.resize(item.num_outputs);
  request->context.emplace(item.node, request->inputs, request->outputs,
                           &step_->info, &request->tag, frame_.run->allocator);
  // A device without a limit uses the host's memory: its kernels keep their
  // order.
  request->frees =
      frame_.run->allocator == &host_allocator() || frees_memory(*request);
  return request;
}

// Note [Freeing first] in kernel_request.h. A kernel that takes handles makes
// little memory itself.
bool Interpreter::frees_memory(const KernelRequest& request) {
  size_t freed = 0;
  for (const Tensor& input : request.inputs) {
    if (!is_plain(input.dtype())) return true;
    if (input.buffer() != nullptr && input.unique())
      freed += input.buffer()->bytes;
  }
  return freed > 0 && freed >= size_t(1) << request.item->log_output_bytes;
}

void Interpreter::give_request(KernelRequest* request) {
  request->claim.release();
  request->inputs.clear();
  request->outputs.clear();
  request->status = Status();
  request->wait.at_stop.clear();
  free_requests_.push_back(request);
}

void Interpreter::take_answer(KernelRequest& request) {
  --outstanding_;
  state_.pending(request.node) &= ~IterationState::kAsked;
  const NodeItem& item = *request.item;
  if (!request.status.ok()) {
    fail(std::move(request.status), *item.node);
  } else if (request.work == KernelRequest::Work::kCompute) {
    finish_kernel(item, request.outputs.data());
  } else {
    take_copy(request.node, std::move(request.outputs[0]));
  }
  give_request(&request);
}

bool Interpreter::defer_if_heavy(uint32_t node, const NodeItem& item) {
  if (item.only_if_large) {
    bool large = false;
    for (uint32_t i = 0; i < item.num_inputs; ++i) {
      const Tensor& input = state_.slot(item.first_slot + i);
      large = large || (input.buffer() != nullptr &&
                        input.dtype() != DataType::kResource);
    }
    if (!large) return false;
  }
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_,
      frame_.run->allocator);
  if (devices::cost_of(*item.kernel, context) <
      devices::Kernel::kHeavyNanoseconds)
    return false;
  heavy_.push_back(node);
  return true;
}

void Interpreter::fire_heavy(Runner& runner) {
  if (heavy_.empty()) return;
  const uint32_t node = heavy_.back();
  heavy_.pop_back();
  if (observer_ != nullptr)
    observer_->on_compute(location(), *nodes_[node].node);
  if (trace_ != nullptr) {
    trace_->clock();
    trace_->add(TraceBuffer::kCompute, node);
  }
  {
    const devices::StepWork work(step_->info, *nodes_[node].node,
                                 frame_.run->plan->device_label);
    fire_kernel(node, nodes_[node]);
  }
  runner.note_time();
  if (trace_ != nullptr) trace_->clock();
  if (observer_ != nullptr)
    observer_->on_computed(location(), *nodes_[node].node);
}

KernelRequest* Interpreter::take_heavy() {
  KernelRequest* const request = take_kernel_request(heavy_.back());
  heavy_.pop_back();
  ++counters_.offloaded;
  return request;
}

// Returns whether the kernel was computed, or has failed.
bool Interpreter::compute_at_once(const NodeItem& item,
                                  const devices::AsyncKernel& kernel) {
  devices::KernelContext context(
      item.node, {state_.slots() + item.first_slot, item.num_inputs},
      {outputs_.data(), item.num_outputs}, &step_->info, &tag_,
      frame_.run->allocator);
  std::optional<Status> status = devices::try_async_kernel(kernel, context);
  if (!status) return false;
  if (status->ok()) [[likely]] {
    consume_inputs(item);
    finish_kernel(item, outputs_.data());
  } else {
    fail(*std::move(status), *item.node);
  }
  return true;
}

void Interpreter::fire_async(uint32_t node, const NodeItem& item) {
  const auto* kernel = static_cast<const devices::AsyncKernel*>(item.kernel);
  if (compute_at_once(item, *kernel)) return;
  KernelRequest* const request = take_kernel_request(node);
  request->wait.what = kernel->waits_for();
  request->wait.node = item.node;
  request->wait.kernel = kernel;
  request->wait.context = &*request->context;
  step_->begin_wait(request->wait);
  devices::run_kernel_async(
      *kernel, *request->context,
      [request](Status status) { request->answer_async(std::move(status)); });
}

// --- Parking ----------------------------------------------------------------

void Interpreter::park(uint32_t node, devices::StateClaim&& claim) {
  KernelRequest* const request = take_kernel_request(node);
  request->claim = std::move(claim);
  request->park();
}

// --- Accelerators -----------------------------------------------------------

bool Interpreter::must_copy_in(const Tensor& value) const {
  return frame_.run->accelerated && value.buffer() != nullptr &&
         is_plain(value.dtype());
}

// Requests leave together, in their order, when the handler has fired all ready
// nodes.
void Interpreter::add_to_requests(KernelRequest* request) {
  (out_.last_request == nullptr ? out_.first_request
                                : out_.last_request->after) = request;
  out_.last_request = request;
}

void Interpreter::request_kernel(uint32_t node) {
  ++counters_.launched;
  add_to_requests(take_kernel_request(node));
}

void Interpreter::request_copy(uint32_t node, KernelRequest::Work work,
                               Tensor&& value) {
  KernelRequest* request = take_request(node);
  request->work = work;
  request->inputs.push_back(std::move(value));
  request->outputs.resize(1);
  add_to_requests(request);
}

// Copies the input that chooses a Switch's output from the device's memory to
// the host: the Switch fires again when the copy has arrived.
bool Interpreter::fetch_chooser(uint32_t node) {
  const NodeItem& item = nodes_[node];
  if (devices::host_readable(state_.slot(item.first_slot + 1))) return false;
  request_copy(node, KernelRequest::Work::kCopyToHost, take_input(item, 1));
  return true;
}

void Interpreter::take_copy(uint32_t node, Tensor&& value) {
  const NodeItem& item = nodes_[node];
  switch (item.kind) {
    case NodeKind::kSend:
      send_transfer(node, false, std::move(value));
      break;
    case NodeKind::kRecv:
      finish_kernel(item, &value);
      break;
    default:
      state_.slot(item.first_slot + 1) = std::move(value);
      observer_ != nullptr ? fire_other(node, false) : fire(node);
  }
}

// --- Transfers --------------------------------------------------------------

const TransferItem& Interpreter::transfer_of(const NodeItem& item) const {
  return frame_.run->plan->transfers[item.ordinal];
}

Token& Interpreter::add_transfer(const TransferItem& transfer, bool is_dead) {
  if (out_.transfers == nullptr)
    out_.transfers = take_batch(BatchKind::kTransfers);
  return out_.transfers->tokens.add(transfer.number, is_dead);
}

// What leaves the process is outstanding until it is accepted.
void Interpreter::send_transfer(uint32_t node, bool is_dead, Tensor&& value) {
  const NodeItem& item = nodes_[node];
  const TransferItem& transfer = transfer_of(item);
  Token& token = add_transfer(transfer, is_dead);
  token.value.take(value);
  if (transfer.leaves) [[unlikely]] {
    token.waiter = node;
    state_.pending(node) |= IterationState::kAsked;
    ++outstanding_;
    return;
  }
  token.waiter = Token::kNobody;
  send_control(ports_[item.first_port]);
}

void Interpreter::fire_send(uint32_t node, const NodeItem& item) {
  Tensor value = take_input(item, 0);
  if (devices::host_readable(value)) {
    send_transfer(node, false, std::move(value));
  } else {
    request_copy(node, KernelRequest::Work::kCopyToHost, std::move(value));
  }
}

// A dead Recv also takes its token, which is always sent.
void Interpreter::fire_recv(uint32_t node, const NodeItem& item) {
  add_transfer(transfer_of(item), false).waiter = node;
  ++outstanding_;
}

void Interpreter::take_received(Batch& batch) {
  for (Token& token : batch.tokens) {
    --outstanding_;
    const NodeItem& item = nodes_[token.slot];
    uint32_t& word = state_.pending(token.slot);
    if (item.kind == NodeKind::kSend) [[unlikely]] {
      word &= ~IterationState::kAsked;
      send_control(ports_[item.first_port]);
      continue;
    }
    word = (word & ~IterationState::kDead) | IterationState::kTaken |
           (token.is_dead ? IterationState::kDead : 0);
    if (trace_ != nullptr) [[unlikely]]
      trace_->add(TraceBuffer::kResult, token.slot);
    if (token.is_dead) {
      skip(item);
      continue;
    }
    const DataType wanted = remove_ref(item.node->output_dtypes()[0]);
    if (token.value.dtype() != wanted) [[unlikely]] {
      fail(
          invalid_argument("[_Recv] the token is of type {}, but must be of {}",
                           dtype_name(token.value.dtype()), dtype_name(wanted)),
          *item.node);
      break;
    }
    if (must_copy_in(token.value)) {
      request_copy(token.slot, KernelRequest::Work::kCopyFromHost,
                   std::move(token.value));
    } else {
      finish_kernel(item, &token.value);
    }
  }
}

}  // namespace tagflow::actors
