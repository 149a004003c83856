// Workers on this machine, each in a process of its own.
#pragma once

#include <memory>
#include <vector>

#include "apps/shared/runs/child_process.h"
#include "graph/status.h"
#include "net/master/cluster.h"

namespace tagflow::apps {

// A worker process ends when its stdin does, and so with its parent, however
// that ends. Thread-compatible.
class LocalCluster {
 public:
  // Starts "/job:worker/task:0" and so on, with so many threads each; 0: one
  // per core. Returns errors of the processes and of net::Cluster.
  static Result<LocalCluster> start(int count, int threads);

  // Its master, for SessionOptions::backend.
  const std::shared_ptr<net::Cluster>& master() const { return master_; }

 private:
  LocalCluster() = default;

  std::vector<ChildProcess> workers_;  // destroyed last
  std::shared_ptr<net::Cluster> master_;
};

// What such a process runs: reads its task, its threads and the secret from
// stdin, prints its port, and returns at the end of stdin.
Status serve_local_worker();

}  // namespace tagflow::apps
