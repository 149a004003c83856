// TransferName: what a Send and its Recv are called in all processes.
#pragma once

#include <string>

#include "graph/node.h"

namespace tagflow::graph {

struct TransferName {
  std::string sender;    // the full name of a device
  std::string receiver;  // the same
  std::string tensor;
  // "sender;incarnation;receiver;tensor": Note [Transfers] in
  // actors/runtime/rendezvous.h.
  std::string key;
  bool is_sent = false;  // the node is a Send
};

// Whether the node is a Send or a Recv. Thread-safe.
bool is_transfer(const Node& node);
// Of such a node; an error if it lacks an attribute. Thread-safe.
Result<TransferName> transfer_name_of(const Node& node);

}  // namespace tagflow::graph
