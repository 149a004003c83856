// The options of programs that go on after the loss of workers.
#pragma once

#include <memory>

#include "apps/shared/runs/cluster_connection.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

struct RestartOptions {
  int count = 0;     // how many losses the program survives
  double wait = 10;  // seconds, for workers that are not there
};

// Declares --restarts, which is returned, and --restart-wait. `options` must
// outlive the parsing, and holds the defaults.
CLI::Option* add_restart_options(CLI::App& app, RestartOptions& options);

// What EngineOptions::reconnection has to be; null without restarts.
std::shared_ptr<Reconnection> reconnection_of(const RestartOptions& options);

}  // namespace tagflow::apps
