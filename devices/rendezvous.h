// Rendezvous: where a Send meets its Recv.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/kernel.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Names one transfer of a step: the static edge ("source device;incarnation;
// destination device;tensor name") and the tag of the token. Each is sent once
// and received once.
struct TransferKey {
  std::string_view edge;
  Tag tag;

  std::string to_string() const;
};

// The token: a dead one carries no value.
struct Transfer {
  Tensor value;
  bool is_dead = false;
};

// One per step. Either side may come first; whoever is second completes the
// transfer. Thread-safe.
class Rendezvous {
 public:
  // Called once, by the sending thread or, where the token is there already,
  // by the receiving one before receive() returns.
  using Receiver = std::function<void(Result<Transfer>)>;

  virtual ~Rendezvous() = default;
  // AlreadyExists where the key was sent before.
  virtual Status send(const TransferKey& key, Transfer transfer) = 0;
  virtual void receive(const TransferKey& key, Receiver receiver) = 0;
  // Receives that still wait, as text, for messages.
  virtual std::vector<std::string> waiting() const = 0;
  // Drops all tokens and all receivers, uncalled.
  virtual void clear() = 0;
};

// Within one process.
std::unique_ptr<Rendezvous> make_local_rendezvous();

}  // namespace tagflow::devices
