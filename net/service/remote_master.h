// RemoteMaster: a master service, for the sessions of its client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/session/backend.h"
#include "actors/watch/trace.h"
#include "net/transfer/pairing.h"

namespace tagflow::net {

class Tls;

struct RemoteMasterOptions {
  Address address;     // at which the service listens
  std::string name;    // of the cluster
  std::string secret;  // what its processes share; not empty
  // A master's; null: without TLS.
  std::shared_ptr<Tls> tls;
  // How long connect() tries again.
  std::chrono::milliseconds patience{0};
};

// Sessions whose SessionOptions::backend it is are sessions of the service:
// Note [Served sessions]. Variables, queues and tables are those of its
// containers, which all of its clients share. reset() is for all of them.
// The trace of a run is that of the service's workers. Observers are
// Unimplemented, and so are Session::explain() and learn(). The engine, devices
// and policy of the options are those of the service.
//
// If the service is lost, all runs fail with Unavailable; there is no other
// connection. If a worker of the service is lost, the runs that use it fail,
// and later ones compile again, as those of a Cluster. Thread-safe.
class RemoteMaster final : public actors::Backend {
 public:
  // Errors of Connector; Unavailable if the service cannot be reached.
  static Result<std::shared_ptr<RemoteMaster>> connect(
      RemoteMasterOptions options);
  // REQUIRES: no session uses it any more.
  ~RemoteMaster() override;

  std::span<const graph::DeviceInfo> devices() const override;
  const graph::KernelCatalog& kernels() const override;
  Result<std::shared_ptr<actors::ServedSession>> open(
      const actors::SessionOptions& options) override;
  // Internal, since its sessions are those of open().
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const actors::SessionOptions& options,
                    graph::Budget* budget) override;
  Status reset(const std::vector<std::string>& containers) override;
  bool has_local_files() const override { return false; }
  // Records runs of any client that begin from now on and are over before the
  // end: as many as `most`, and as the trace has room for. Of runs that follow
  // each other closely it may miss some. Asks `goes_on` now and then whether to
  // go on. Returns how many it has recorded. Errors of the service.
  Result<int> watch(actors::Trace& trace, int most,
                    const std::function<bool()>& goes_on);

  class Impl;

 private:
  explicit RemoteMaster(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl> impl_;
};

}  // namespace tagflow::net
