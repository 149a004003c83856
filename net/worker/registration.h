// Registration: an executable of the master, compiled for this worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/device_set.h"
#include "actors/session/executable.h"
#include "graph/budget.h"
#include "graph/op_policy.h"
#include "net/transfer/linked_port.h"
#include "net/wire/messages.h"

namespace tagflow::actors {
class SessionFunctions;  // actors/session/session_functions.h
}

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

// The worker that registrations are for. Thread-compatible.
struct Registrar {
  std::string task;
  std::shared_ptr<actors::DeviceSet> devices;
  graph::OpPolicy policy;  // of the nodes of graphs
  std::shared_ptr<const devices::HostAccess> files;
  // Receives what is odd about functions, when they are called, until
  // close_functions().
  std::function<void(const std::string&)> on_warning;

  // Those of registrations that iterators may still use.
  std::vector<std::weak_ptr<actors::SessionFunctions>> functions;
  // How many registrations had functions of these names.
  std::map<std::string, uint64_t> counts;

  // Ends all calls, and waits for them.
  void close_functions();
};

// Reads, checks and compiles the parts. `sessions` are those with the peers, in
// their order, and `parts` outlives the executable. Sessions may end before it,
// but not before its last step. InvalidArgument if the transfers, devices or
// programs do not fit each other; PermissionDenied by the policy; and errors of
// read_program(), compile() and the budget.
Result<std::shared_ptr<Registered>> compile_registration(
    const Register& registration, Registrar& worker,
    const std::vector<std::shared_ptr<PeerSession>>& sessions, Parts& parts,
    graph::Budget& budget);

}  // namespace tagflow::net
