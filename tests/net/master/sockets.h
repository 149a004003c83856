// Workers of the process that tests them, with their master: a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/master/cluster.h"
#include "net/worker/worker.h"
#include "tests/actors/process_cases.h"
#include "tests/net/link/test_certificates.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {

// Workers, and their master, which goes first.
class Sockets final : public actors::Backend {
 public:
  Sockets(int count, const std::string& devices, int threads,
          bool has_local_door = true, bool has_tls = false) {
    if (has_tls) options_.tls = master_tls();
    for (uint32_t task = 0; task < uint32_t(count); ++task) {
      WorkerOptions worker = local_worker(task);
      worker.devices = devices;
      worker.workers = threads;
      worker.has_local_door = has_local_door;
      if (has_tls) worker.tls = worker_tls(task);
      workers_.push_back(
          graph::testing::must(Worker::start(std::move(worker))));
      options_.members.push_back(
          {{"worker", task}, {"localhost", workers_.back()->port()}});
    }
    cluster_ = graph::testing::must(Cluster::connect(options_));
  }

  std::span<const graph::DeviceInfo> devices() const override {
    return cluster_->devices();
  }
  const graph::KernelCatalog& kernels() const override {
    return cluster_->kernels();
  }
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const actors::SessionOptions& options,
                    graph::Budget* budget) override {
    return cluster_->make(std::move(partitions), std::move(fetches), options,
                          budget);
  }
  Status reset(const std::vector<std::string>& containers) override {
    return cluster_->reset(containers);
  }
  bool has_local_files() const override { return false; }
  void close_worker(size_t task) { workers_[task].reset(); }
  const ClusterOptions& options() const { return options_; }
  // Another master takes the place of the present one, when the workers have
  // ended what they had for it.
  void reconnect() {
    cluster_.reset();
    for (;;) {
      auto cluster = Cluster::connect(options_);
      if (!cluster.ok()) continue;
      cluster_ = std::move(*cluster);
      return;
    }
  }

 private:
  ClusterOptions options_ = local_cluster();
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<Cluster> cluster_;
};

inline std::shared_ptr<actors::Backend> over_sockets(int count,
                                                     const std::string& devices,
                                                     int workers,
                                                     uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers);
}

inline std::shared_ptr<actors::Backend> over_tcp(int count,
                                                 const std::string& devices,
                                                 int workers,
                                                 uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers, false);
}

inline std::shared_ptr<actors::Backend> over_tls(int count,
                                                 const std::string& devices,
                                                 int workers,
                                                 uint64_t /*seed*/) {
  return std::make_shared<Sockets>(count, devices, workers, true, true);
}

}  // namespace tagflow::net
