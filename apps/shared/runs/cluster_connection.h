// The cluster that a command runs on.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/program/exit_code.h"
#include "apps/shared/runs/engine_options.h"

namespace tagflow::apps {

// A cluster to which a command connects again when it has lost workers.
struct Reconnection {
  // How long it waits then for workers that are not there. After that it goes
  // on without them.
  std::chrono::milliseconds wait{0};
  // The tasks of the cluster, from the first connection on: "/job:NAME/task:N".
  std::vector<std::string> tasks;
  std::vector<std::string> lost;  // those that the last connection lacks
};

// Becomes the master of the workers that options.cluster names, or a client of
// the service that it names, and sets options.backend to them; does nothing if
// it is empty. They are free again when the backend and its sessions have gone.
// Call this when op libraries are loaded: workers must have the same ones. If
// options.reconnection has tasks, it waits for these.
//
// Returns a usage error for switches that only a run in this process has, and
// the errors of the files, of net::members_of() and net::Cluster::connect().
Failure connect_cluster(EngineOptions& options);

// A usage error if a cluster is named, for what needs to see more of every node
// that fires than a trace has, as "--learn".
Status refuse_watching_cluster(const EngineOptions& options,
                               std::string_view what);

}  // namespace tagflow::apps
