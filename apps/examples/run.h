// Helpers that run the graphs of the examples.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

namespace tagflow::examples {

// Options for the given devices: "cpu:2" means two CPU devices. 0 workers: one
// per core.
inline actors::SessionOptions on_devices(const std::string& devices,
                                         int workers = 0) {
  actors::SessionOptions options;
  options.devices = devices;
  options.workers = workers;
  return options;
}

// Options with an observer of the run, and a trace of it; null: none.
inline actors::RunOptions watched_by(actors::Observer* observer,
                                     actors::Trace* trace = nullptr) {
  actors::RunOptions options;
  options.observer = observer;
  options.trace = trace;
  return options;
}

// Runs the graph of `s` once and returns the fetches. Ends the program with a
// message if the graph could not be built or run.
inline std::vector<Tensor> run(const graph::Scope& s,
                               const std::vector<actors::Feed>& feeds,
                               const graph::Outputs& fetches,
                               const actors::SessionOptions& options = {},
                               const actors::RunOptions& run_options = {}) {
  const auto try_run = [&]() -> Result<std::vector<Tensor>> {
    TAGFLOW_RETURN_IF_ERROR(s.status());
    TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
    TAGFLOW_RETURN_IF_ERROR(session->extend(s.graph()));
    std::vector<std::string> names;
    for (const graph::Output& fetch : fetches) names.push_back(fetch.name());
    return session->run(feeds, names, {}, run_options);
  };
  auto results = try_run();
  if (results.ok()) return *std::move(results);
  std::fprintf(stderr, "%s\n", results.status().to_string().c_str());
  std::exit(1);
}

}  // namespace tagflow::examples
