// Backend: where the partitions of a session run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/options.h"
#include "actors/runtime/device_set.h"
#include "actors/session/executable.h"
#include "graph/partition/partition.h"
#include "graph/placement/device_info.h"

namespace tagflow::graph {
class Budget;  // graph/budget.h
}

namespace tagflow::actors {

class ServedSession;  // actors/session/served_session.h

// Note [Backends]
// A session extracts, rewrites, places and cuts a signature, and starts its
// runs: with their border, time-outs and cancellation. All this needs names and
// numbers of devices only. What becomes of the partitions is the backend's: it
// compiles them for the devices that it has, in this process or in others, and
// gives an Executable that runs them as one step.
//
// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // The devices that partitions may be for, by number. They do not change.
  virtual std::span<const graph::DeviceInfo> devices() const = 0;
  // The kernels that these have.
  virtual const graph::KernelCatalog& kernels() const = 0;

  struct Made {
    std::shared_ptr<Executable> executable;
    std::vector<std::string> warnings;  // about the graph
  };
  // Compiles the partitions of a signature with fetches of these names. Of the
  // options it uses those that make_local() does, and the seed, or else that of
  // their state. Errors as compile() in actors/plan/compile.h; others say which
  // process is lost. REQUIRES: the options have a state.
  virtual Result<Made> make(std::vector<graph::Partition> partitions,
                            std::vector<std::string> fetches,
                            const SessionOptions& options,
                            graph::Budget* budget) = 0;
  // For a backend that cuts and compiles whole graphs itself: what it has of a
  // session, which then never calls make(). Else null.
  virtual Result<std::shared_ptr<ServedSession>> open(
      const SessionOptions& /*options*/) {
    return std::shared_ptr<ServedSession>();
  }
  // Removes the resources in these containers: see Session::reset().
  virtual Status reset(const std::vector<std::string>& containers) = 0;
  // Whether the `done` of an asynchronous run may be called on the thread that
  // brings the answer, such as a link's. Else it is called on a worker, which
  // has to wake up, since it may be a user's and take long.
  virtual bool answers_at_once() const { return false; }
  // Whether ops at all of the devices use the files of this process.
  virtual bool has_local_files() const = 0;
  // Whether what its processes hold belongs together, so that a snapshot of it
  // means something; else Unavailable with what was lost.
  virtual Status check_state() const { return {}; }
};

// Compiles partitions for the devices of this process; with `peers`, the part
// of one that belongs to a cluster. `host` is what kernels may reach. Of the
// options it uses those of compile(), the limits of calls, and `hand_off`,
// which is not that of the actors of devices: that is the engine's.
Result<Backend::Made> make_local(
    std::vector<graph::Partition> partitions, std::vector<std::string> fetches,
    const SessionOptions& options, const std::shared_ptr<DeviceSet>& devices,
    std::shared_ptr<const devices::HostAccess> host, std::optional<Peers> peers,
    graph::Budget* budget);

// The devices of this process.
class LocalBackend final : public Backend {
 public:
  // `host`: what kernels may reach.
  LocalBackend(std::shared_ptr<SharedState> state,
               std::shared_ptr<DeviceSet> devices,
               std::shared_ptr<const devices::HostAccess> host);

  std::span<const graph::DeviceInfo> devices() const override {
    return devices_->infos();
  }
  const graph::KernelCatalog& kernels() const override;
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const SessionOptions& options,
                    graph::Budget* budget) override;
  Status reset(const std::vector<std::string>& containers) override;
  bool has_local_files() const override { return true; }

 private:
  const std::shared_ptr<SharedState> state_;
  const std::shared_ptr<DeviceSet> devices_;
  const std::shared_ptr<const devices::HostAccess> host_;
};

}  // namespace tagflow::actors
