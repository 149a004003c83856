// Pairing: the two connections of a channel, which come one after the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "graph/budget.h"
#include "net/link/connection.h"
#include "net/link/hello.h"
#include "net/link/io_thread.h"

namespace tagflow::net {

// Thread-compatible.
class Pairing {
 public:
  struct Pair {
    Greeting peer;
    Socket small, bulk;
  };
  // Processes of which only one connection is here; with more, the others are
  // closed.
  static constexpr size_t kMost = 64;

  // Both connections of a peer, if this is the second one.
  std::optional<Pair> add(Connection connection) {
    if (halves_.size() >= kMost) halves_.clear();
    const uint64_t incarnation = connection.peer.incarnation;
    Pair& pair = halves_[incarnation];
    const bool is_small = connection.peer.purpose == Purpose::kSmall;
    (is_small ? pair.small : pair.bulk) = std::move(connection.socket);
    pair.peer = std::move(connection.peer);
    if (pair.small.descriptor() < 0 || pair.bulk.descriptor() < 0)
      return std::nullopt;
    std::optional<Pair> both(std::move(pair));
    halves_.erase(incarnation);
    return both;
  }

 private:
  std::map<uint64_t, Pair> halves_;  // by incarnation
};

struct Address {
  std::string host;
  uint16_t port = 0;
};

// How often the budget is looked at while something else is waited for.
inline constexpr std::chrono::milliseconds kBudgetLook{20};

// Connects once. Blocks up to kHelloTime. Errors of Connector, and of the
// budget. REQUIRES: the thread is not an io thread.
Result<Connection> connect(IoThread& thread, const Address& address,
                           const Identity& identity, Purpose purpose,
                           uint64_t wanted_incarnation = 0,
                           graph::Budget* budget = nullptr);
// Connects both connections of a channel, one after the other. Tries again
// while the patience lasts and Retries has hope: a worker that has just lost
// its master refuses another one for a moment. Unavailable if the wanted
// incarnation has ended, which is not tried again. Blocks up to twice
// kHelloTime more. REQUIRES: the thread is not an io thread.
Result<Pairing::Pair> connect_pair(IoThread& thread, const Address& address,
                                   const Identity& identity,
                                   uint64_t wanted_incarnation,
                                   std::chrono::milliseconds patience = {},
                                   graph::Budget* budget = nullptr);

}  // namespace tagflow::net
