#include "actors/runtime/kernel_request.h"

#include <memory>
#include <utility>

#include "actors/runtime/engine_actor.h"
#include "devices/state/guard.h"

namespace tagflow::actors {

// The answer of an asynchronous kernel, from any thread.
void KernelRequest::answer_async(Status&& answer) {
  Step* const step = batch.step;
  // The thread may leave late: this keeps everything that it needs alive.
  const std::shared_ptr<Step> alive = step->weak_from_this().lock();
  status = std::move(answer);
  step->end_wait(wait);
  owner->accept(&batch);
}

class KernelRequest::Parked final : public devices::StateLock::Waiter {
  using StateLock = devices::StateLock;

 public:
  Parked(KernelRequest& request, StateLock& lock)
      : request_(request), lock_(lock) {}

  void on_granted() override {
    request_.claim.note_granted();
    request_.go_on_waiting();
  }

 protected:
  void on_cancel() override {
    lock_.pass_over();
    request_.answer_async(request_.cancelled());
  }

 private:
  // Valid as long as the step waits, like the lock, which the claim keeps.
  KernelRequest& request_;
  StateLock& lock_;
};

Status KernelRequest::cancelled() const {
  return error(Code::kCancelled, "[{}] the step was cancelled",
               item->node->op());
}

void KernelRequest::park() {
  wait.what = devices::WaitsFor::kSharedState;
  wait.node = item->node;
  wait.kernel = nullptr;
  batch.step->begin_wait(wait);
  go_on_waiting();
}

void KernelRequest::go_on_waiting() {
  if (claim.take()) {
    is_granted = true;
    return answer_async({});
  }
  std::shared_ptr<Parked> parked;
  Status failed = guarded(item->node->op(), [&]() -> Status {
    const devices::StateClaim::Part awaited = claim.next();
    parked = std::make_shared<Parked>(*this, *awaited.lock);
    if (!batch.step->info.cancels->add(parked)) return cancelled();
    // From here on a cancellation may end the request at any time.
    awaited.wait(parked);
    return {};
  });
  if (!failed.ok() && (parked == nullptr || parked->claim()))
    answer_async(std::move(failed));
}

}  // namespace tagflow::actors
