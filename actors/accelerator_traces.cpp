#include "actors/accelerator_traces.h"

#include <utility>

#include "actors/trace.h"

namespace tagflow::actors {

AcceleratorTraces::AcceleratorTraces(devices::Device& device)
    : device_(device.info().name.to_string()),
      accelerator_(*device.accelerator()),
      open_(std::make_shared<Open>()) {}

void AcceleratorTraces::begin(Trace& trace) {
  const std::lock_guard only_one(mutex_);
  {
    const std::lock_guard lock(open_->mutex);
    ++open_->runs[&trace];
    if (std::exchange(is_observing_, true)) return;
  }
  accelerator_.observe([open = open_, device = device_](
                           const devices::AcceleratorActivity& activity) {
    const std::lock_guard lock(open->mutex);
    for (const auto& [of_run, count] : open->runs)
      of_run->add_activity(device, activity);
  });
}

void AcceleratorTraces::end(Trace& trace) {
  const std::lock_guard only_one(mutex_);
  // While the trace is there: what has ended may be told of only now.
  is_observing_ = runs_but_one() > 0;
  if (!is_observing_) accelerator_.observe({});
  const std::lock_guard lock(open_->mutex);
  if (--open_->runs[&trace] == 0) open_->runs.erase(&trace);
}

int AcceleratorTraces::runs_but_one() const {
  const std::lock_guard lock(open_->mutex);
  int runs = -1;
  for (const auto& [trace, count] : open_->runs) runs += count;
  return runs;
}

}  // namespace tagflow::actors
