#include "actors/runtime/accelerator_actor.h"

#include "actors/runtime/engine.h"
#include "actors/runtime/step.h"
#include "devices/saved_tensor.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// The longest time for which a thread of the accelerator runs actors.
constexpr std::chrono::microseconds kLentQuantum{50};

// Set while a request is begun on this thread: immediate answers are posted to
// this runner.
thread_local Runner* beginning = nullptr;

// Whether the request needs a taking permit.
bool takes_memory(const KernelRequest& request) {
  return request.work == KernelRequest::Work::kCompute && !request.frees;
}

struct Beginning {
  explicit Beginning(Runner& runner) { beginning = &runner; }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;
  ~Beginning() { beginning = nullptr; }
};

}  // namespace

AcceleratorActor::AcceleratorActor(caf::actor_config& config, HandOff policy,
                                   devices::Accelerator& accelerator)
    : EngineActor(config, policy), accelerator_(accelerator) {
  set_shared();
}

void AcceleratorActor::on_batch(Batch* batch, Runner& runner) {
  const Beginning here(runner);
  // Other requests get this turn after the requests of this batch.
  const TakingPermit taken = std::move(batch->request->taken);
  for (KernelRequest* request = batch->request; request != nullptr;) {
    // After its answer, the request belongs to its owner again.
    KernelRequest* const after = request->after;
    take(*request, runner);
    request = after;
  }
}

void AcceleratorActor::take(KernelRequest& request, Runner& runner) {
  Step& step = *request.batch.step;
  if (step.cancelled()) {
    runner.post(request.owner, &request.batch);
    return;
  }
  // This unit belongs to the accelerator until it has answered.
  step.add_activity();
  open_.fetch_add(1, std::memory_order_relaxed);
  if (!takes_memory(request)) return begin(request);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push(&request.batch);
  }
  begin_waiting();
}

// Only one thread runs the loop at a time: immediate answers do not nest.
void AcceleratorActor::begin_waiting() {
  std::unique_lock lock(mutex_);
  if (std::exchange(begins_waiting_, true)) return;
  while (!waiting_.empty() && taking_ < kMostTaking) {
    KernelRequest& request = *waiting_.pop()->request;
    ++taking_;
    request.taking = TakingPermit(*this);
    lock.unlock();
    begin(request);
    lock.lock();
  }
  begins_waiting_ = false;
}

void AcceleratorActor::end_taking() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --taking_;
  }
  begin_waiting();
}

TakingPermit::TakingPermit(AcceleratorActor& accelerator)
    : accelerator_(caf::actor_cast<caf::actor>(&accelerator)) {}

TakingPermit& TakingPermit::operator=(TakingPermit&& other) noexcept {
  end();
  accelerator_ = std::move(other.accelerator_);
  return *this;
}

void TakingPermit::end() noexcept {
  const caf::actor accelerator = std::move(accelerator_);
  if (accelerator != nullptr)
    actor_pointer<AcceleratorActor>(accelerator)->end_taking();
}

void AcceleratorActor::answer(KernelRequest& request) {
  // The answer may end the step that keeps this actor alive.
  const auto alive = caf::actor_cast<caf::strong_actor_ptr>(this);
  open_.fetch_sub(1, std::memory_order_relaxed);
  if (beginning != nullptr) {
    beginning->post_counted(request.owner, &request.batch);
  } else {
    const Engine::Lent lent(Engine::Lender::kDevice);
    Runner runner(nullptr, policy(), kLentQuantum,
                  answers_.fetch_add(1, std::memory_order_relaxed), &open_);
    runner.post_counted(request.owner, &request.batch);
    runner.drain();
  }
}

void AcceleratorActor::begin(KernelRequest& request) {
  try {
    pass_on(request);
  } catch (...) {
    request.status = current_fault("device");
    answer(request);
  }
}

void AcceleratorActor::pass_on(KernelRequest& request) {
  const auto copied = [this, &request](Result<Tensor> copy) {
    if (copy.ok()) {
      request.outputs[0] = std::move(*copy);
    } else {
      request.status = std::move(copy).status();
    }
    answer(request);
  };
  const uint64_t step = request.batch.step->info.step_id;
  switch (request.work) {
    case KernelRequest::Work::kCompute:
      if (const auto saved =
              devices::next_saved(*request.item->kernel, *request.context))
        saved->fetch([this, &request] { launch_kernel(request); });
      else
        launch_kernel(request);
      break;
    case KernelRequest::Work::kCopyToHost:
      accelerator_.copy_to_host(std::move(request.inputs[0]), copied, step);
      break;
    case KernelRequest::Work::kCopyFromHost:
      accelerator_.copy_from_host(std::move(request.inputs[0]), copied, step);
      break;
  }
}

void AcceleratorActor::launch_kernel(KernelRequest& request) {
  try {
    accelerator_.launch(*request.item->kernel, *request.context,
                        [this, &request](Status status) {
                          request.status = std::move(status);
                          answer(request);
                        });
  } catch (...) {
    request.status = current_fault("device");
    answer(request);
  }
}

}  // namespace tagflow::actors
