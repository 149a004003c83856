// Workers of the process that tests them, and the cluster that they are of.
#pragma once

#include <cstdint>
#include <string>

#include "net/master/cluster.h"
#include "net/worker/worker.h"

namespace tagflow::net {

inline constexpr char kTestCluster[] = "test";
inline constexpr char kTestSecret[] = "a secret of this test";

// /job:worker/task:N with one CPU and one thread, which warns nobody.
inline WorkerOptions local_worker(uint32_t task) {
  WorkerOptions options;
  options.task = {"worker", task};
  options.cluster = kTestCluster;
  options.secret = kTestSecret;
  options.devices = "cpu:1";
  options.workers = 1;
  options.on_event = [](const Event&) {};
  return options;
}

// Has no members yet.
inline ClusterOptions local_cluster() {
  ClusterOptions options;
  options.name = kTestCluster;
  options.secret = kTestSecret;
  return options;
}

}  // namespace tagflow::net
