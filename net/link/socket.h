// Socket: owns the descriptor of a connection, and its session of TLS.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "graph/status.h"

namespace tagflow::net {

class TlsSession;  // net/link/tls.h

// Thread-compatible.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor, std::shared_ptr<TlsSession> tls = {})
      : descriptor_(descriptor), tls_(std::move(tls)) {}
  Socket(Socket&& other) noexcept
      : descriptor_(other.release()), tls_(std::move(other.tls_)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(tls_, other.tls_);
    return *this;
  }
  ~Socket();

  // -1 if there is none.
  int descriptor() const { return descriptor_; }
  // Of a connection with TLS; null: it is without. All that is read and written
  // goes through it.
  const std::shared_ptr<TlsSession>& tls() const { return tls_; }
  // The caller closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
  std::shared_ptr<TlsSession> tls_;
};

// Makes a socket fit for links: calls do not wait, and TCP sends at once what
// is written. Unavailable if it is not a socket. Thread-compatible.
Status prepare_socket(const Socket& socket);
// Its address family: AF_INET, and so on; AF_UNSPEC if it has none.
int family_of(const Socket& socket);

// Whether a process of this user listens at the other end of a Unix socket that
// has connected; false if the system does not say.
bool is_of_this_user(int socket);

// The address of the other side, as "10.0.0.7"; empty if it has none.
std::string peer_host_of(int socket);
// The port of its own address; 0 if it has none.
uint16_t port_of(int socket);

}  // namespace tagflow::net
