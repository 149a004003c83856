// GrpcServer: where clients reach services by gRPC.
//
// Nothing here or in what includes it knows gRPC's headers: a build without
// gRPC has the same functions, of net/no_grpc/, and starts no server.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "net/config/tls_files.h"

namespace tagflow::net {

struct GrpcServerOptions {
  std::string host = "localhost";  // on which it listens
  uint16_t port = 0;               // 0: one that is free
  // Without TLS, only addresses of loopback are served.
  bool beyond_loopback = false;
  TlsFiles tls;  // empty: without TLS. Read once, when the server starts
  // With TLS: clients must show a certificate of these authorities.
  bool asks_for_certificates = true;

  // Of one request or answer, in bytes, at most 2 GiB - 1.
  int max_message = 512 << 20;
  // Of all that is on its way from and to clients. Near to it, the server ends
  // calls and connections that wait.
  size_t max_buffers = size_t{2} << 30;
  int max_calls = 1000;  // of one connection, at a time
  // A connection that says nothing for so long is asked whether it lives, and
  // has as long as that again to answer.
  std::chrono::seconds keep_alive{60};
};

// One service of a server, such as make_session_door() gives.
class GrpcService {
 public:
  virtual ~GrpcService() = default;
};

// Thread-safe.
class GrpcServer {
 public:
  // Serves these services, one at least, until it is stopped. What is behind
  // them outlives the server. Unavailable if it cannot listen; PermissionDenied
  // for an address beyond loopback without TLS; errors of the files of TLS;
  // InvalidArgument for an option out of range; Unimplemented in a build
  // without gRPC.
  static Result<std::unique_ptr<GrpcServer>> start(
      GrpcServerOptions options,
      std::vector<std::unique_ptr<GrpcService>> services);

  virtual uint16_t port() const = 0;
  // Takes no more calls, waits so long for those that are open, cancels the
  // others, and waits until all have been answered. A second call has no
  // effect.
  virtual void stop(std::chrono::nanoseconds patience) = 0;
  // As stop(), without patience.
  virtual ~GrpcServer() = default;
};

}  // namespace tagflow::net
