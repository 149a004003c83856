// The process that a session runs in, if it is not this one.
#pragma once

#include <memory>
#include <string>

#include "graph/status.h"

namespace tagflow::actors {
class Backend;
}

namespace tagflow::python {

// As given by the user.
struct Target {
  std::string address;      // "tagflow://HOST:PORT"; empty: this process
  std::string secret_file;  // what its processes share
  std::string tls_ca, tls_cert, tls_key;  // files in PEM; empty: without TLS
};

// Connects to the master service. Null for this process. InvalidArgument for
// what is no address, or without a secret; errors of reading the files, and of
// net::RemoteMaster::connect(). Blocks; REQUIRES: the GIL is released.
Result<std::shared_ptr<actors::Backend>> connect(const Target& target);

}  // namespace tagflow::python
