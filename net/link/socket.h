// Socket: owns the descriptor of a connection.
#pragma once

#include <cstdint>
#include <utility>

#include "graph/status.h"

namespace tagflow::net {

// Thread-compatible.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  // -1 if there is none.
  int descriptor() const { return descriptor_; }
  // The caller closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Makes a socket fit for links: calls do not wait, and TCP sends at once what
// is written. Unavailable if it is not a socket. Thread-compatible.
Status prepare_socket(const Socket& socket);
// Its address family: AF_INET, and so on; AF_UNSPEC if it has none.
int family_of(const Socket& socket);

// Whether a process of this user listens at the other end of a Unix socket that
// has connected; false if the system does not say.
bool is_of_this_user(int socket);

// The port of its own address; 0 if it has none.
uint16_t port_of(int socket);

}  // namespace tagflow::net
