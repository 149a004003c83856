// Cluster: the workers of a session, whose steps run there.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/session/backend.h"
#include "net/transfer/pairing.h"
#include "net/wire/messages.h"

namespace tagflow::net {

struct ClusterOptions {
  struct Member {
    Task task;
    Address address;  // at which its worker listens
  };
  std::vector<Member> members;
  std::string name;    // of the cluster
  std::string secret;  // what its processes share; not empty
  // How long connect() tries again to reach each member, or to be its master.
  std::chrono::milliseconds patience{0};
};

// Sessions whose SessionOptions::backend it is run their graphs on the devices
// of the workers, "/job:NAME/replica:0/task:N/device:CPU:0". It is their master
// until it is destroyed.
//
// If a worker is lost, the steps that use it fail with Unavailable naming it,
// and so do later ones: a new cluster is needed, and the variables of the
// workers have gone. Thread-safe.
class Cluster final : public actors::Backend {
 public:
  // Connects to all members. InvalidArgument if there is no member, or a task
  // twice; errors of Connector, with the task.
  static Result<std::shared_ptr<Cluster>> connect(ClusterOptions options);
  // REQUIRES: no session uses it any more.
  ~Cluster() override;

  std::span<const graph::DeviceInfo> devices() const override;
  const graph::KernelCatalog& kernels() const override;
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    graph::Budget* budget) override;
  Status reset(const std::vector<std::string>& containers) override;

  class Impl;

 private:
  explicit Cluster(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl> impl_;
};

}  // namespace tagflow::net
