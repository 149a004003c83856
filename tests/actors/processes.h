// Processes of a test: engines whose partitions meet over a network in memory,
// which delays and reorders. What net/ does with sockets, in one process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/plan/compile.h"
#include "actors/plan/distribute.h"
#include "actors/runtime/device_set.h"
#include "actors/session/executable.h"

namespace tagflow::actors {

// Where tokens are on their way. Thread-safe.
class PeerNetwork {
 public:
  // `seed` decides how long each token takes, and whether its Send is
  // accepted at once or when the token arrives.
  PeerNetwork(int processes, uint64_t seed);
  // REQUIRES: no step runs any more.
  ~PeerNetwork();

  // For the executables of one process.
  Peers peers(int process);

  class Impl;

 private:
  const std::shared_ptr<Impl> impl_;
};

// Job "worker", one task each. Thread-compatible.
class Processes {
 public:
  // Each has the devices of `devices`, and `workers` threads.
  Processes(int count, const std::string& devices, int workers, uint64_t seed);

  // Distributes the signature over all devices, by options.scatter, compiles
  // each process's part, and runs it. The first error ends all parts, and is
  // the answer.
  Result<std::vector<Tensor>> run(
      const graph::Graph& graph,
      std::span<const std::pair<std::string, Tensor>> feeds,
      const std::vector<std::string>& fetches, const SessionOptions& options);
  // In how many processes the last run had a part.
  int parts() const { return parts_; }

 private:
  std::vector<std::shared_ptr<DeviceSet>> sets_;
  std::vector<graph::DeviceInfo> infos_;  // of all
  PeerNetwork network_;
  uint64_t steps_ = 0;
  int parts_ = 0;
};

}  // namespace tagflow::actors
