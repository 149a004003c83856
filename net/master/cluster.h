// Cluster: the workers of a session, whose steps run there.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/session/backend.h"
#include "net/link/silence.h"
#include "net/master/figures.h"
#include "net/transfer/pairing.h"
#include "net/wire/event.h"
#include "net/wire/messages.h"

namespace tagflow::net {

class Tls;
struct IoThreads;  // net/transfer/channel.h

struct ClusterOptions {
  struct Member {
    Task task;
    Address address;  // at which its worker listens
  };
  std::vector<Member> members;
  std::string name;    // of the cluster
  std::string secret;  // what its processes share; not empty
  // A master's, by load_tls() in net/config/tls_files.h; null: without TLS.
  std::shared_ptr<Tls> tls;
  // Steps may update state that is torn: Note [Torn state] in
  // net/protocol/torn_state.h. Else they are refused with FailedPrecondition
  // until a reset() of the default container, and of others that the graph has.
  bool tolerates_torn_state = false;
  // How long a worker that lives may take to end its part of a step that has
  // failed. Then it is given up, as if it were lost.
  std::chrono::milliseconds grace{10'000 * kSlowness};
  // How long connect() tries again to reach each member, or to be its master.
  std::chrono::milliseconds patience{0};
  // Receives which workers were lost, which pairs of them have lost each other,
  // and which steps have failed. May be empty.
  OnEvent on_event;
  // connect() goes on without members that it cannot reach, unless it reaches
  // none. Otherwise each is an error.
  bool leaves_out_lost = false;
};

// Sessions whose SessionOptions::backend it is run their graphs on the devices
// of the workers, "/job:NAME/replica:0/task:N/device:CPU:0". It is their master
// until it is destroyed. RunStats are sums over the workers. The trace of a run
// gets what the workers have recorded, at their devices, with the times of this
// process's clock; of a worker that was lost it has nothing. A run with an
// observer is Unimplemented, since that is local to a process.
//
// If a worker is lost, the steps that use it fail with Unavailable naming it.
// Later runs of a session compile again what they need, and then use the
// process that listens at its address, if there is one: its variables have
// gone. If two workers lose the links between them, it is the same, but their
// state stays. A Callable stays with the worker or the links that were lost.
// Thread-safe.
class Cluster final : public actors::Backend {
 public:
  // Connects to the members. InvalidArgument if there is no member, or a task
  // twice; errors of Connector, with the task: Unavailable if a member cannot
  // be reached.
  static Result<std::shared_ptr<Cluster>> connect(ClusterOptions options);
  // REQUIRES: no session uses it any more.
  ~Cluster() override;

  // Those of its links, which other links of this process may use: a step that
  // comes by one and goes on by another wakes no further thread.
  std::shared_ptr<const IoThreads> threads() const;
  // Those that connect() has left out, in the order of the options.
  const std::vector<Task>& left_out() const;
  // For whoever watches it. Waits for no step, and no connection.
  ClusterFigures figures() const;
  std::span<const graph::DeviceInfo> devices() const override;
  const graph::KernelCatalog& kernels() const override;
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const actors::SessionOptions& options,
                    graph::Budget* budget) override;
  // Of the workers that are not lost. Mends torn state if the default container
  // is among them.
  Status reset(const std::vector<std::string>& containers) override;
  bool has_local_files() const override { return false; }
  Status check_state() const override;

  class Impl;

 private:
  explicit Cluster(std::shared_ptr<Impl> impl);
  const std::shared_ptr<Impl> impl_;
};

}  // namespace tagflow::net
