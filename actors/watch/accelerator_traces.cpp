#include "actors/watch/accelerator_traces.h"

#include <utility>

#include "actors/watch/trace.h"

namespace tagflow::actors {

AcceleratorTraces::AcceleratorTraces(devices::Device& device)
    : device_(device.info().name.to_string()),
      accelerator_(*device.accelerator()),
      open_(std::make_shared<Open>()) {}

void AcceleratorTraces::begin(uint64_t step, Trace& trace) {
  const std::lock_guard only_one(mutex_);
  {
    const std::lock_guard lock(open_->mutex);
    open_->steps[step] = &trace;
    if (std::exchange(is_observing_, true)) return;
  }
  accelerator_.observe([open = open_, device = device_](
                           const devices::AcceleratorActivity& activity) {
    const std::lock_guard lock(open->mutex);
    for (const auto& [traced, of_step] : open->steps)
      if (activity.step == 0 || activity.step == traced)
        of_step->add_activity(device, activity);
  });
}

void AcceleratorTraces::end(uint64_t step, Trace&) {
  const std::lock_guard only_one(mutex_);
  // The trace is still registered here: an activity that has ended may be
  // reported late.
  {
    const std::lock_guard lock(open_->mutex);
    is_observing_ = open_->steps.size() > 1;
  }
  if (!is_observing_) accelerator_.observe({});
  const std::lock_guard lock(open_->mutex);
  open_->steps.erase(step);
}

}  // namespace tagflow::actors
