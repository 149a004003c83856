// AcceleratorTraces: what an accelerator does, for the traces of runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "devices/device.h"

namespace tagflow::actors {

class Trace;  // actors/watch/trace.h

// Observes an accelerator for as long as a step is traced, so that steps that
// are not cost nothing. A trace gets what is done for its own steps, and what
// the device cannot tell apart. Thread-safe.
class AcceleratorTraces {
 public:
  explicit AcceleratorTraces(devices::Device& device);

  // A trace may be of several steps at once. Steps have numbers that differ in
  // the whole process.
  void begin(uint64_t step, Trace& trace);
  void end(uint64_t step, Trace& trace);

 private:
  // Shared with the observer, which may be called after it was replaced.
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
