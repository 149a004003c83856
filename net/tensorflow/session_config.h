// What a client's ConfigProto says, as far as it means something here.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "graph/passes/pass_set.h"
#include "graph/placement/device_info.h"
#include "graph/status.h"

namespace tensorflow {
class ConfigProto;
class RunOptions;
}  // namespace tensorflow

namespace tagflow::net {

struct SessionConfig {
  bool soft_placement = false;
  bool isolated = false;                // it has a state of its own
  std::chrono::nanoseconds timeout{0};  // of each run; none if zero
  std::vector<graph::Pass> unwanted;    // passes that it switches off
  std::vector<std::string> ignored;     // what has no effect, in sentences
};

// For a server with these devices and so many worker threads. Thread-safe.
SessionConfig read_config(const tensorflow::ConfigProto& proto,
                          std::span<const graph::DeviceInfo> devices,
                          int workers);

// A time-out in milliseconds; zero, for none, if it is not positive.
// Thread-safe.
std::chrono::nanoseconds timeout_of(int64_t milliseconds);

// What of a run's options has no effect, in sentences. Thread-safe.
std::vector<std::string> ignored_options(const tensorflow::RunOptions& proto);

}  // namespace tagflow::net
