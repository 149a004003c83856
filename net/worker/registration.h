// Registration: an executable of the master, compiled for this worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/device_set.h"
#include "actors/session/executable.h"
#include "graph/budget.h"
#include "graph/op_policy.h"
#include "net/transfer/linked_port.h"
#include "net/wire/messages.h"

namespace tagflow::net {

struct Registered {
  // A feed that the worker's partitions take.
  struct Feed {
    uint32_t index = 0;
    std::string name;  // "x:0"
    DataType dtype = DataType::kInvalid;
    PartialShape shape;
  };
  std::shared_ptr<actors::Executable> executable;
  size_t num_feeds = 0;  // of the signature
  std::vector<Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> warnings;
};

// The worker that registrations are for.
struct Registrar {
  std::string task;
  std::shared_ptr<actors::DeviceSet> devices;
  graph::OpPolicy policy;  // of the nodes of graphs
  std::shared_ptr<const devices::HostAccess> files;
  // Receives what is odd about functions, when they are called. May outlive
  // all of this.
  std::function<void(const std::string&)> on_warning;
};

// Reads, checks and compiles the parts. `sessions` are those with the peers, in
// their order, and `parts` outlives the executable. Sessions may end before it,
// but not before its last step. InvalidArgument if the transfers, devices or
// programs do not fit each other; PermissionDenied by the policy; and errors of
// read_program(), compile() and the budget.
Result<std::shared_ptr<Registered>> compile_registration(
    const Register& registration, const Registrar& worker,
    const std::vector<std::shared_ptr<PeerSession>>& sessions, Parts& parts,
    graph::Budget& budget);

}  // namespace tagflow::net
