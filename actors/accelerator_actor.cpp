#include "actors/accelerator_actor.h"

#include "actors/step.h"

namespace tagflow::actors {
namespace {

// How long a thread of the accelerator's runs actors.
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
    : EngineActor(config, policy), accelerator_(accelerator) {}

void AcceleratorActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->step->cancelled()) {
    runner.post(batch->request->owner, batch);
    return;
  }
  // The accelerator's, until it has answered.
  batch->step->add_activity();
  const Beginning here(runner);
  begin(*batch->request);
}

void AcceleratorActor::answer(KernelRequest& request, HandOff policy) {
  if (beginning != nullptr) {
    beginning->post_counted(request.owner, &request.batch);
    return;
  }
  Runner runner(nullptr, policy, kLentQuantum);
  runner.post_counted(request.owner, &request.batch);
  runner.drain();
}

void AcceleratorActor::begin(KernelRequest& request) {
  const auto computed = [&request, policy = policy()](Status status) {
    request.status = std::move(status);
    answer(request, policy);
  };
  const auto copied = [&request, policy = policy()](Result<Tensor> copy) {
    if (copy.ok()) {
      request.outputs[0] = std::move(*copy);
    } else {
      request.status = std::move(copy).status();
    }
    answer(request, policy);
  };
  switch (request.work) {
    case KernelRequest::Work::kCompute:
      accelerator_.launch(*request.item->kernel, *request.context, computed);
      break;
    case KernelRequest::Work::kCopyToHost:
      accelerator_.copy_to_host(std::move(request.inputs[0]), copied);
      break;
    case KernelRequest::Work::kCopyFromHost:
      accelerator_.copy_from_host(std::move(request.inputs[0]), copied);
      break;
  }
}

}  // namespace tagflow::actors
