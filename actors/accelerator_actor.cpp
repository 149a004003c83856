#include "actors/accelerator_actor.h"

#include "actors/engine.h"
#include "actors/step.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// How long a thread of the accelerator's runs actors at most.
constexpr std::chrono::microseconds kLentQuantum{50};

// While a request is begun on this thread: what is answered at once is posted
// here.
thread_local Runner* beginning = nullptr;

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
  for (KernelRequest* request = batch->request; request != nullptr;) {
    // Answered, it is its owner's again.
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
  // The accelerator's, until it has answered.
  step.add_activity();
  open_.fetch_add(1, std::memory_order_relaxed);
  try {
    begin(request);
  } catch (...) {
    request.status = current_fault("device");
    answer(request);
  }
}

void AcceleratorActor::answer(KernelRequest& request) {
  open_.fetch_sub(1, std::memory_order_relaxed);
  if (beginning != nullptr) {
    beginning->post_counted(request.owner, &request.batch);
    return;
  }
  const Engine::Lent lent(Engine::Lender::kDevice);
  Runner runner(nullptr, policy(), kLentQuantum,
                answers_.fetch_add(1, std::memory_order_relaxed), &open_);
  runner.post_counted(request.owner, &request.batch);
  runner.drain();
}

void AcceleratorActor::begin(KernelRequest& request) {
  const auto computed = [this, &request](Status status) {
    request.status = std::move(status);
    answer(request);
  };
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
      accelerator_.launch(*request.item->kernel, *request.context, computed);
      break;
    case KernelRequest::Work::kCopyToHost:
      accelerator_.copy_to_host(std::move(request.inputs[0]), copied, step);
      break;
    case KernelRequest::Work::kCopyFromHost:
      accelerator_.copy_from_host(std::move(request.inputs[0]), copied, step);
      break;
  }
}

}  // namespace tagflow::actors
