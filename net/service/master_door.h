// MasterDoor: where clients reach a master service by links.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/service/master_service.h"
#include "net/wire/event.h"

namespace tagflow::net {

class Tls;
struct IoThreads;  // net/transfer/channel.h

struct MasterDoorOptions {
  std::string cluster;  // its name, which clients must know
  std::string secret;   // so is this; not empty
  // A master's; null: without TLS.
  std::shared_ptr<Tls> tls;
  std::string host = "localhost";  // on which it listens
  uint16_t port = 0;               // 0: one that is free
  // As those of WorkerOptions.
  bool beyond_loopback = false;
  bool has_local_door = true;
  // Of its links: those of the cluster that the service runs on. Null: its own.
  std::shared_ptr<const IoThreads> threads;
  // Receives why a client was lost or refused. May be empty.
  OnEvent on_event;
};

// A client is one control connection, whose frames are short, and one for
// tensors and graphs. It speaks as a master does with a worker, but asks for
// sessions, graphs and signatures: docs/wire.md. When one of the connections is
// lost, the client leaves. Each has a thread for what may take long, so none
// waits for the compilation of another one. Thread-safe.
class MasterDoor {
 public:
  // The service outlives the door. InvalidArgument for an empty secret,
  // Unavailable if it cannot listen, PermissionDenied if it may not.
  static Result<std::unique_ptr<MasterDoor>> start(MasterService& service,
                                                   MasterDoorOptions options);
  // Tells the clients, whose runs fail with Unavailable, and waits until they
  // have left.
  ~MasterDoor();
  MasterDoor(const MasterDoor&) = delete;
  MasterDoor& operator=(const MasterDoor&) = delete;

  uint16_t port() const;
  // Clients that have not left. Thread-safe.
  size_t num_clients() const;

 private:
  class Link;
  class Impl;
  explicit MasterDoor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tagflow::net
