// ControlSystem: CAF with its network, whose connections have ended our hello.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/scribe.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "graph/status.h"
#include "net/control/actors.h"
#include "net/link/connection.h"
#include "net/link/io_thread.h"

namespace tagflow::net {

// Note [CAF behind the hello]
// CAF opens no port, and never connects by itself: listeners and connectors of
// net/link do, and a connection that has ended its hello is handed to CAF's
// broker of BASP as a scribe of ours. So no byte of a stranger reaches BASP,
// whose parser takes memory by a length that it is told. The scribe differs
// from CAF's own in two things:
//
//   - Its handle is a number that is never used again. CAF's is the descriptor:
//     the clean-up of a connection that has ended, which may come late, would
//     hit a new one that the system gave the same descriptor.
//   - It gives CAF whole messages that a filter has read before: see Note [What
//     reaches CAF] in net/control/basp_filter.h. Any other one ends the
//     connection with a warning, as does a peer that says nothing, or reads no
//     answers.
//
// CAF knows a process by the id of its node, which two containers may share: it
// is made of the machine and the number of the process. BASP would mix them up,
// so the greeting has a hash of the id, and a second process with the same one
// is refused.

// A system of its own, with one thread for actors, since those of the engine
// are as many as the cores. Its threads wait without polling. Thread-safe.
class ControlSystem {
 public:
  // Of a connection that CAF has; never used again.
  enum class ConnectionId : int64_t { kNone = 0 };
  enum class Side { kAcceptor, kConnector };
  struct Peer {
    ConnectionId id{};
    Greeting greeting;
    std::string host;  // the address that the connection comes from
  };

  using OnWarning = std::function<void(const std::string&)>;
  // How long a peer may say nothing: longer than one waits for an answer.
  static constexpr std::chrono::milliseconds kMostSilent = 3 * kAnswerTime;

  // ResourceExhausted if the system gives no threads or descriptors.
  // `on_warning` is told why a connection was ended, by any thread; it may be
  // empty.
  static Result<std::unique_ptr<ControlSystem>> start(
      OnWarning on_warning = {});
  // REQUIRES: its actors were told to quit; the caller is none of its threads.
  ~ControlSystem();
  ControlSystem(const ControlSystem&) = delete;
  ControlSystem& operator=(const ControlSystem&) = delete;

  caf::actor_system& system() { return system_; }
  // CAF's broker, which takes scribes.
  const caf::actor& broker() const { return broker_; }
  // A hash of this node's id, not 0.
  uint64_t node() const { return node_; }
  // That of another node's.
  static uint64_t hash_of(const caf::node_id& node);

  // Makes a scribe of the connection, for the broker. The peer may speak to
  // that actor only. The thread, which outlives the connection, does what TLS
  // needs. Errors of without_tls(). May throw std::bad_alloc.
  using Adopted = std::pair<ConnectionId, caf::io::scribe_ptr>;
  Result<Adopted> adopt(IoThread& thread, Connection connection, Side side,
                        caf::actor_id actor);
  // Ends the connection if the peer says nothing for kMostSilent. The thread
  // outlives this. May throw std::bad_alloc.
  void watch(IoThread& thread, ConnectionId id);
  // Connections that have not ended.
  size_t num_connections() const;
  // The peer with that node, if it is connected.
  std::optional<Peer> find(uint64_t node) const;
  // Ends a connection, if it has not ended: whoever monitors actors at its
  // other end is told at once.
  void cut(ConnectionId id);

 private:
  class Table;
  class Scribe;
  struct Config : caf::actor_system_config {
    Config();
  };

  explicit ControlSystem(OnWarning on_warning);

  const std::shared_ptr<Table> table_;
  Config config_;
  caf::actor_system system_;
  caf::actor broker_;
  uint64_t node_ = 0;
};

}  // namespace tagflow::net
