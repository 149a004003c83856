#include "apps/shared/runs/restart_options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>

namespace tagflow::apps {

CLI::Option* add_restart_options(CLI::App& app, RestartOptions& options) {
  CLI::Option* restarts =
      app.add_option("--restarts", options.count,
                     "how many times to go on from the last checkpoint after "
                     "the loss of workers")
          ->check(CLI::Range(0, 1'000'000));
  app.add_option("--restart-wait", options.wait,
                 "for how many seconds to wait then for a worker that is not "
                 "there, before the run goes on without it")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6))
      ->needs(restarts);
  return restarts;
}

std::shared_ptr<Reconnection> reconnection_of(const RestartOptions& options) {
  if (options.count == 0) return nullptr;
  auto reconnection = std::make_shared<Reconnection>();
  reconnection->wait = std::chrono::milliseconds(int64_t(options.wait * 1000));
  return reconnection;
}

}  // namespace tagflow::apps
