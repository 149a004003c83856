#include "net/link/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace tagflow::net {

namespace {

// Of the socket itself; AF_UNSPEC if it has none.
sockaddr_storage address_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    address.ss_family = AF_UNSPEC;
  return address;
}

const sockaddr_in& v4(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}

const sockaddr_in6& v6(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&v6(address).sin6_addr);
  constexpr uint32_t kNet = 127, kNetShift = 24;
  return address.ss_family == AF_INET &&
         ntohl(v4(address).sin_addr.s_addr) >> kNetShift == kNet;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ != -1) ::close(descriptor_);
}

Status prepare_socket(const Socket& socket) {
  const int flags = ::fcntl(socket.descriptor(), F_GETFL);
  if (flags == -1 ||
      ::fcntl(socket.descriptor(), F_SETFL, flags | O_NONBLOCK) == -1)
    return error(Code::kUnavailable, "[net|link] the socket is of no use: {}",
                 std::generic_category().message(errno));
  const sockaddr_storage address = address_of(socket.descriptor());
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Within a machine nothing is congested, so the pace that some algorithms set
  // only delays. Every system has this one, which sets none.
  constexpr std::string_view kUnpaced = "reno";
  if (is_loopback(address))
    ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_CONGESTION,
                 kUnpaced.data(), socklen_t(kUnpaced.size()));
  // A Unix socket has room for less than one chunk.
  const int room = 1 << 20;
  if (address.ss_family == AF_UNIX)
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDBUF, &room,
                 sizeof(room));
  return {};
}

int family_of(const Socket& socket) {
  return address_of(socket.descriptor()).ss_family;
}

bool is_of_this_user(int socket) {
  ucred listener{};
  socklen_t size = sizeof(listener);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 &&
         listener.uid == ::geteuid();
}

std::string peer_host_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* at = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST] = "";
  if (::getpeername(socket, at, &size) != 0 || address.ss_family == AF_UNIX ||
      ::getnameinfo(at, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) !=
          0)
    return {};
  return host;
}

uint16_t port_of(int socket) {
  const sockaddr_storage address = address_of(socket);
  if (address.ss_family == AF_INET) return ntohs(v4(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(v6(address).sin6_port);
  return 0;
}

}  // namespace tagflow::net
