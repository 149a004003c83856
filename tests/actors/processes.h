// Processes of a test: engines whose partitions meet over a network in memory,
// which delays and reorders. What net/ does with sockets, in one process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/session/backend.h"
#include "actors/shared_state.h"
#include "devices/kernel_catalog.h"

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

// Processes of job "worker", one task each, each with an engine and a state of
// its own. Thread-safe.
class Processes final : public Backend {
 public:
  // Each has the devices of `devices`, and `workers` threads.
  Processes(int count, const std::string& devices, int workers, uint64_t seed);

  std::span<const graph::DeviceInfo> devices() const override { return infos_; }
  const graph::KernelCatalog& kernels() const override { return kernels_; }
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const SessionOptions& options,
                    graph::Budget* budget) override;
  Status reset(const std::vector<std::string>& containers) override;
  bool has_local_files() const override { return true; }

 private:
  class LocalPart;
  struct Process {
    std::shared_ptr<DeviceSet> devices;
    std::shared_ptr<SharedState> state;
  };

  std::vector<Process> processes_;
  std::vector<graph::DeviceInfo> infos_;  // of all
  const devices::RegisteredKernels kernels_;
  PeerNetwork network_;
};

}  // namespace tagflow::actors
