// One training, and what disturbs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/chaos/process.h"
#include "apps/chaos/schedule.h"
#include "apps/chaos/switch.h"
#include "apps/chaos/training.h"
#include "graph/status.h"

namespace tagflow::chaos {

struct Setting {
  std::filesystem::path command;  // tagflow
  std::filesystem::path folder;   // of graph, secret and cluster file
  Switch* network = nullptr;      // null: loopback
  int64_t steps = 0;
  bool workers_write = false;           // the checkpoints, and not the master
  std::chrono::seconds bound{60};       // after that, it hangs
  const StepLines* expected = nullptr;  // null: this is the undisturbed run
};

// What has happened to one fault.
struct Measured {
  std::string row;
  bool has_come = false;
  // In ms: from the fault until the command says that it restarts; and from the
  // end of the fault until the next step is printed.
  std::optional<double> detected, goes_on;
};

struct RunReport {
  Status status;  // of what must hold
  StepLines lines;
  std::vector<Measured> faults;  // as many as were given
  int restarts = 0;              // by the command
  int commands = 0;              // that were started
  double seconds = 0;
};

// Starts three workers and the command that trains, which saves to the folder
// `save` of the setting's one; starts the command again as often as it ends;
// and ends all when it has made its steps. Errors in `status`: DeadlineExceeded
// if it hangs; DataLoss for a wrong line; Internal for a process that ends as
// it should not. The same as check_checkpoints() is left to the caller.
RunReport run_schedule(const Setting& setting, const std::string& save,
                       const std::vector<Fault>& faults);

}  // namespace tagflow::chaos
