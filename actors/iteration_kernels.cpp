// Kernels that do not run where they fire: heavy ones, which may go to a lane
// of the device, those that answer later, and what goes to other partitions.
#include "actors/frame_actor.h"
#include "actors/observer.h"
#include "actors/token_path.h"
#include "devices/rendezvous.h"

namespace tagflow::actors {
namespace {

// A kernel that takes longer than this is worth a hop to another worker, whose
// waking costs 5-10 us.
constexpr double kHeavyNanoseconds = 20e3;

}  // namespace

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
  if (watched_) [[unlikely]]
    trace_turn(runner);
  if (heavy_.empty()) return;
  const uint32_t node = heavy_.back();
  heavy_.pop_back();
  if (observer_ != nullptr) observer_->on_compute(place(), *nodes_[node].node);
  if (trace_ != nullptr) {
    trace_->clock();
    trace_->add(TraceBuffer::kCompute, node);
  }
  fire_kernel(nodes_[node]);
  if (trace_ != nullptr) trace_->clock();
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
  const DataType dtype = remove_ref(item.node->output_dtypes()[0]);
  ++outstanding_;
  step_->info.rendezvous->receive(
      key, [request, dtype](Result<devices::Transfer> transfer) {
        const Tensor* value =
            transfer.ok() && !transfer->is_dead ? &transfer->value : nullptr;
        if (value != nullptr && value->dtype() != dtype) {
          request->status =
              invalid_argument("[_Recv] the token is of type {}, wanted is {}",
                               dtype_name(value->dtype()), dtype_name(dtype));
        } else if (transfer.ok()) {
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
