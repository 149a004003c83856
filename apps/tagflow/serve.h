// What the doors of `tagflow serve` have in common.
#pragma once

#include <string>
#include <vector>

#include "apps/shared/program/exit_code.h"
#include "apps/shared/runs/engine_options.h"
#include "net/grpc/server.h"

namespace tagflow::apps {

struct ServeOptions {
  EngineOptions engine;
  std::vector<std::string> op_libraries;
  std::string http;                 // of the pages; empty: nowhere
  net::TlsFiles tls;                // of the doors of gRPC; empty: without TLS
  bool is_insecure = false;         // beyond loopback without TLS
  double drain = 5;                 // seconds for what is under way, at the end
  int max_message_mebibytes = 512;  // of a request or answer
  int max_buffers_mebibytes = 2048;  // of all that are on their way
};

// Where a door of gRPC listens, by --OPTION. A usage error for what is no
// address.
Failure grpc_options(const ServeOptions& options, const std::string& option,
                     const std::string& address,
                     net::GrpcServerOptions& server);

}  // namespace tagflow::apps
