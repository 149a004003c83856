#include "actors/device_actor.h"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/iteration_actor.h"
#include "actors/step.h"
#include "actors/trace.h"

namespace tagflow::actors {
namespace {

// Tells the step's observer and its trace, if any, when a lane computes.
class ObservedCompute {
 public:
  ObservedCompute(const Step& step, const KernelRequest& request,
                  Runner& runner)
      : observer_(step.observer), node_(*request.item->node), runner_(runner) {
    if (observer_ == nullptr && step.trace == nullptr) return;
    const FrameInstance& frame =
        static_cast<const IterationActor&>(*request.owner).frame();
    if (observer_ != nullptr) {
      place_ = frame.place(request.tag);
      observer_->on_compute(place_, node_);
    }
    if (step.trace == nullptr) return;
    TraceBuffer& trace = runner.trace(*step.trace);
    trace.clock();
    trace.turn_to(TraceBuffer::kLane, frame.trace_number,
                  request.tag.iteration);
    trace.add(TraceBuffer::kCompute, request.node);
  }
  ObservedCompute(const ObservedCompute&) = delete;
  ObservedCompute& operator=(const ObservedCompute&) = delete;
  ~ObservedCompute() {
    if (observer_ != nullptr) observer_->on_computed(place_, node_);
    runner_.leave_trace();
  }

 private:
  Observer* const observer_;
  const graph::Node& node_;
  Runner& runner_;
  Place place_;
};

}  // namespace

LaneActor::LaneActor(caf::actor_config& config, HandOff policy,
                     EngineActor& device)
    : EngineActor(config, policy), device_(&device) {}

void LaneActor::on_batch(Batch* batch, Runner& runner) {
  KernelRequest& request = *batch->request;
  Step* step = batch->step;
  if (!step->cancelled()) {
    const ObservedCompute observed(*step, request, runner);
    request.status = run_kernel(*request.item->kernel, *request.context);
  }
  // The lane is free first: its note must hold a unit of its own, since the
  // answer may end the step.
  Batch* idle = pool().take(BatchKind::kIdle);
  idle->sender = this;
  idle->step = step;
  step->add_activity();
  runner.post_counted(device_, idle);
  runner.post(request.owner, batch);
}

DeviceActor::DeviceActor(caf::actor_config& config, HandOff policy, int lanes)
    : EngineActor(config, policy) {
  for (int i = 0; i < lanes; ++i) {
    handles_.push_back(spawn_actor<LaneActor, caf::lazy_init + caf::hidden>(
        home_system(), policy, std::ref(static_cast<EngineActor&>(*this))));
    idle_.push_back(actor_pointer<LaneActor>(handles_.back()));
  }
}

void DeviceActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->kind == BatchKind::kIdle) {
    idle_.push_back(static_cast<LaneActor*>(batch->sender));
    pool().give(batch);
  } else {
    // It waits here on the unit of activity that it brought.
    waiting_.push_back(batch);
    batch->step->add_activity();
  }
  dispatch(runner);
}

void DeviceActor::dispatch(Runner& runner) {
  while (!waiting_.empty() && !idle_.empty()) {
    Batch* batch = waiting_.front();
    waiting_.pop_front();
    LaneActor* lane = idle_.back();
    idle_.pop_back();
    runner.post_counted(lane, batch);
  }
  // Lanes are there to run side by side: let other workers take them.
  runner.flush();
}

void DeviceActor::on_stop() {
  for (const caf::actor& lane : handles_) caf::anon_send(lane, Stop{});
  handles_.clear();
}

}  // namespace tagflow::actors
