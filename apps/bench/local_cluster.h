// Workers on this machine, each in a process of its own.
#pragma once

#include <filesystem>
#include <memory>

#include "apps/shared/runs/local_workers.h"
#include "graph/status.h"
#include "net/master/cluster.h"

namespace tagflow::apps {

inline constexpr int kWorkers = 2;  // of most workloads
inline constexpr const char* kTasks[kWorkers] = {"/job:worker/task:0",
                                                 "/job:worker/task:1"};

// So many quiet workers of the cluster "bench", with a new secret in the
// folder, which they have read when they are ready. Errors of
// net::write_new_secret().
Result<LocalWorkersOptions> bench_workers(const std::filesystem::path& folder,
                                          int count, int threads);

// They end with it, or with its process. Thread-compatible.
class LocalCluster {
 public:
  // Starts "/job:worker/task:0" and so on, with so many threads each; 0: the
  // cores are shared. With `tls`, all connections are by certificates. They may
  // write shards to the folder `checkpoints`, unless it is empty. Returns
  // errors of LocalWorkers and of net::Cluster.
  static Result<LocalCluster> start(
      int count, int threads, bool tls = false,
      const std::filesystem::path& checkpoints = {});

  // Its master, for SessionOptions::backend.
  const std::shared_ptr<net::Cluster>& master() const { return master_; }

 private:
  LocalCluster() = default;

  std::unique_ptr<LocalWorkers> workers_;  // destroyed last
  std::shared_ptr<net::Cluster> master_;
};

}  // namespace tagflow::apps
