// AcceleratorTraces: what an accelerator does, for the traces of runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "devices/device.h"

namespace tagflow::actors {

class Trace;  // actors/trace.h

// Observes an accelerator for as long as a run is traced, so that runs that are
// not cost nothing. What an accelerator does is not told apart by runs: a trace
// gets all of it. Thread-safe.
class AcceleratorTraces {
 public:
  explicit AcceleratorTraces(devices::Device& device);

  // A trace may be of several runs at once.
  void begin(Trace& trace);
  void end(Trace& trace);

 private:
  // Shared with the observer, which may be called after it was replaced.
  struct Open {
    std::mutex mutex;  // guards the below
    std::map<Trace*, int> runs;
  };

  // How many runs are traced besides one.
  int runs_but_one() const;

  const std::string device_;
  devices::Accelerator& accelerator_;
  const std::shared_ptr<Open> open_;
  std::mutex mutex_;  // guards the below, and changes; locked before Open's
  bool is_observing_ = false;
};

}  // namespace tagflow::actors
