// Registration: an executable of the master, compiled for this worker.
#pragma once

#include <cstdint>
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

// Reads, checks and compiles the parts. `sessions` are those with the peers, in
// their order, which the executable keeps, and `parts` outlives it.
// InvalidArgument if the transfers, devices or programs do not fit each other;
// PermissionDenied by the policy; and errors of read_program(), compile() and
// the budget.
Result<std::shared_ptr<Registered>> compile_registration(
    const Register& registration,
    const std::shared_ptr<actors::DeviceSet>& devices,
    const graph::OpPolicy& policy,
    const std::shared_ptr<const devices::HostAccess>& host_access,
    const std::vector<std::shared_ptr<PeerSession>>& sessions, Parts& parts,
    graph::Budget& budget);

}  // namespace tagflow::net
