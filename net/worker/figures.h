// WorkerFigures: what a worker says of itself to whoever watches it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "devices/memory_stats.h"
#include "net/protocol/step_counts.h"
#include "net/transfer/link_figures.h"

namespace tagflow::net {

struct WorkerFigures {
  struct Device {
    std::string name;  // its full one
    devices::MemoryStats memory;
  };
  // It listens. Between two masters it does not, for a moment.
  bool is_serving = false;
  bool has_master = false;
  bool is_leaving = false;
  bool has_ended = false;     // it leaves, and its steps are over
  uint64_t incarnations = 0;  // since the process has begun
  StepCounts::Numbers steps;  // of all of these
  uint64_t executables = 0;
  std::vector<Device> devices;
  std::vector<LinkFigures> links;
};

}  // namespace tagflow::net
