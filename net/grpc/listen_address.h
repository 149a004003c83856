// The address on which a server of gRPC listens.
#pragma once

#include <cstdint>
#include <string>

#include "graph/status.h"

namespace tagflow::net {

// "127.0.0.1:80" or "[::1]:80" for a host by name or number, so that what
// listens there looks up nothing. Unavailable if there is no such host;
// PermissionDenied for an address beyond loopback, if `only_loopback`.
// Thread-safe.
Result<std::string> listen_address(const std::string& host, uint16_t port,
                                   bool only_loopback);

}  // namespace tagflow::net
