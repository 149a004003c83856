#include "actors/runtime/device_actor.h"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/runtime/iteration_actor.h"
#include "actors/runtime/step.h"
#include "actors/watch/trace.h"
#include "devices/state/guard.h"
#include "devices/thread_activity.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// Reports to the step's observer and its trace, if any, when a lane computes.
class ObservedCompute {
 public:
  ObservedCompute(const Step& step, const KernelRequest& request,
                  Runner& runner)
      : observer_(step.observer), node_(*request.item->node), runner_(runner) {
    const FrameInstance& frame =
        static_cast<const IterationActor&>(*request.owner).frame();
    if (observer_ != nullptr) {
      location_ = frame.location(request.tag);
      observer_->on_compute(location_, node_);
    }
    if (step.trace == nullptr) return;
    TraceBuffer& trace = runner.trace(*step.trace);
    trace.clock();
    trace.switch_to(TraceBuffer::kLane, frame.trace_number,
                    request.tag.iteration);
    trace.add(TraceBuffer::kCompute, request.node);
  }
  ObservedCompute(const ObservedCompute&) = delete;
  ObservedCompute& operator=(const ObservedCompute&) = delete;
  ~ObservedCompute() { runner_.leave_trace(); }

  // Called when the kernel has returned.
  void end() {
    if (observer_ != nullptr) observer_->on_computed(location_, node_);
  }

 private:
  Observer* const observer_;
  const graph::Node& node_;
  Runner& runner_;
  Location location_;
};

}  // namespace

LaneActor::LaneActor(caf::actor_config& config, HandOff policy,
                     EngineActor& device)
    : EngineActor(config, policy), device_(&device) {
  idle_.kind = BatchKind::kIdle;
  idle_.sender = this;
}

std::optional<Status> LaneActor::compute(KernelRequest& request,
                                         Runner& runner) {
  Step& step = *request.batch.step;
  try {
    ObservedCompute observed(step, request, runner);
    const devices::StepWork work(
        step.info, *request.item->node,
        static_cast<const IterationActor&>(*request.owner)
            .frame()
            .run->plan->device_label);
    std::optional<Status> status =
        request.item->kind == NodeKind::kState
            ? devices::try_state_kernel(
                  static_cast<const devices::StateKernel&>(
                      *request.item->kernel),
                  *request.context, request.claim)
            : devices::run_kernel(*request.item->kernel, *request.context);
    observed.end();
    return status;
  } catch (...) {
    return current_fault("observer");
  }
}

void LaneActor::on_batch(Batch* batch, Runner& runner) {
  KernelRequest& request = *batch->request;
  Step* step = batch->step;
  request.is_granted = false;
  bool parks = false;
  if (!step->cancelled()) {
    runner.flush();
    std::optional<Status> status = compute(request, runner);
    parks = !status;
    if (!parks) request.status = *std::move(status);
    runner.note_time();
  }
  // The lane is released first: its batch needs a unit of its own, since the
  // answer may end the step.
  idle_.step = step;
  step->add_activity();
  runner.post_counted(device_, &idle_);
  if (parks) {
    request.park();
  } else {
    runner.post(request.owner, batch);
  }
}

DeviceActor::DeviceActor(caf::actor_config& config, HandOff policy, int lanes)
    : EngineActor(config, policy) {
  set_shared();
  for (int i = 0; i < lanes; ++i) {
    handles_.push_back(spawn_actor<LaneActor, caf::lazy_init + caf::hidden>(
        home_system(), policy, std::ref(static_cast<EngineActor&>(*this))));
    idle_.push_back(actor_pointer<LaneActor>(handles_.back()));
  }
}

void DeviceActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->kind == BatchKind::kIdle) {
    idle_.push_back(static_cast<LaneActor*>(batch->sender));
  } else {
    // The waiting batch keeps the unit of activity that it brought.
    batch->step->add_activity();
    admit(batch);
  }
  dispatch(runner);
}

void DeviceActor::Ring::push_front(StepQueue& queue) {
  queue.next = first;
  if (first == nullptr) last = &queue;
  first = &queue;
}

void DeviceActor::Ring::push_back(StepQueue& queue) {
  queue.next = nullptr;
  (first == nullptr ? first : last->next) = &queue;
  last = &queue;
}

void DeviceActor::Ring::pop_front() {
  first = first->next;
  if (first == nullptr) last = nullptr;
}

void DeviceActor::admit(Batch* batch) {
  StepQueue& queue = *batch->request->queue;
  const bool is_new = queue.empty();
  queue.push(batch, batch->request->frees);
  if (is_new) (batch->step->urgent ? urgent_ : normal_).push_back(queue);
}

Batch* DeviceActor::take_next() {
  Ring& ring =
      order_.take_urgent(urgent_.first != nullptr, normal_.first != nullptr)
          ? urgent_
          : normal_;
  StepQueue* const queue = ring.first;
  if (queue == nullptr) return nullptr;
  Batch* const batch = queue->pop();
  ring.pop_front();
  if (queue->empty()) return batch;
  if (batch->step->cancelled()) {
    // The step was cancelled: all its requests are returned now.
    ring.push_front(*queue);
  } else {
    // Its next turn comes after those of the other runs.
    ring.push_back(*queue);
  }
  return batch;
}

void DeviceActor::dispatch(Runner& runner) {
  while (!idle_.empty()) {
    Batch* const batch = take_next();
    if (batch == nullptr) break;
    if (batch->step->cancelled()) {
      runner.post_counted(batch->request->owner, batch);
      continue;
    }
    LaneActor* lane = idle_.back();
    idle_.pop_back();
    runner.post_counted(lane, batch);
  }
  // Lanes should run in parallel: other workers take them.
  runner.flush();
}

void DeviceActor::on_stop() {
  for (const caf::actor& lane : handles_) caf::anon_send(lane, Stop{});
  handles_.clear();
}

}  // namespace tagflow::actors
