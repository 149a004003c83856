// AcceleratorTraces: passes the activity of an accelerator to the traces of
// runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "devices/device.h"

namespace tagflow::actors {

class Trace;  // actors/watch/trace.h

// Observes an accelerator only while a step is traced, so that other steps have
// no overhead. A trace gets the activities of its own steps, and those that the
// device cannot assign to a step. Thread-safe.
class AcceleratorTraces {
 public:
  explicit AcceleratorTraces(devices::Device& device);

  // One trace may record several steps at once. The numbers of steps are unique
  // in the process.
  void begin(uint64_t step, Trace& trace);
  void end(uint64_t step, Trace& trace);

 private:
  // Shared with the observer, which may still be called after its replacement.
  struct Open {
    std::mutex mutex;  // guards the below
    std::map<uint64_t, Trace*> steps;
  };

  const std::string device_;
  devices::Accelerator& accelerator_;
  const std::shared_ptr<Open> open_;
  std::mutex mutex_;  // guards the below, and changes; locked before Open's
  bool is_observing_ = false;
};

}  // namespace tagflow::actors
