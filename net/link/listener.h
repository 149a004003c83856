// Listener: the port of a process. Connector: a connection to another one's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/link/connection.h"
#include "net/link/hello.h"
#include "net/link/io_thread.h"
#include "net/link/silence.h"

namespace tagflow::net {

// The time for a hello, and of a connector for all that it does.
inline constexpr std::chrono::milliseconds kHelloTime{2000 * kSlowness};

// Accepts connections, and hands on those that end their hello in time. A
// stranger costs one socket for a while: if there are too many, or no
// descriptor is left, the oldest one is closed, first of those that have not
// greeted. So under a flood a peer may be closed too, and has to try again.
// Handlers are called on the io thread, one at a time. Thread-compatible.
class Listener {
 public:
  struct Options {
    // An address or a name of this machine, of IPv4 or IPv6. Empty: all
    // addresses.
    std::string host = "localhost";
    uint16_t port = 0;  // 0: one that is free
    // Other addresses than those of loopback are refused.
    bool only_loopback = false;
    // Whether processes of this machine may come by a local door, which is
    // faster than TCP; see Note [The local door]. At loopback only.
    bool has_local_door = true;
    size_t most_pending = 64;
    std::chrono::milliseconds hello_time = kHelloTime;
    // Receives why a peer was refused by TLS, with its address; may be empty.
    // Not twice in a row the same, and at most once a second.
    std::function<void(const Status&)> on_refused;
  };
  using OnConnection = std::function<void(Connection)>;

  // `admit` decides about peers that have proved themselves. Greetings have the
  // port of the listener, whatever the identity says. Unavailable naming the
  // host and the port if it cannot listen there, PermissionDenied if it may
  // not; InvalidArgument for an identity that cannot be written. The io thread
  // must outlive the listener.
  static Result<std::unique_ptr<Listener>> start(IoThread& thread,
                                                 Options options,
                                                 Identity identity,
                                                 Hello::Admit admit,
                                                 OnConnection on_connection);
  // No handler is called any more when this returns. It waits for one that
  // runs, which must not destroy the listener.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const;
  // Connections that have not ended their hello. Thread-safe.
  size_t pending() const;

 private:
  struct State;
  explicit Listener(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Connects once. A peer that is not there yet, or not any more, is worth
// another try: the error is Unavailable, or DeadlineExceeded; so is one that
// refuses, as by Aborted. Other errors say why the two processes do not fit
// together. A peer that ends the connection before its verdict is not there any
// more; one with another secret says so, which is Unauthenticated. See Retries
// in net/link/retries.h. Thread-compatible.
class Connector {
 public:
  struct Options {
    std::string host;
    uint16_t port = 0;
    Purpose purpose = Purpose::kSmall;
    uint64_t wanted_incarnation = 0;  // of the peer; 0: any
    std::chrono::milliseconds time = kHelloTime;
  };
  using OnDone = std::function<void(Result<Connection>)>;

  // Tries all addresses of the host in turn. Calls on_done once, on the io
  // thread, which must outlive the connector. A name server that does not
  // answer delays the end of that thread. May throw std::bad_alloc.
  Connector(IoThread& thread, Options options, const Identity& identity,
            OnDone on_done);
  // on_done is not called any more when this returns; it may destroy the
  // connector.
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tagflow::net
