#include "net/link/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace tagflow::net {

namespace {

// Whether a connection's own address is one of loopback.
bool is_within_machine(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address),
                    &size) != 0)
    return false;
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(
        &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  constexpr uint32_t kNet = 127, kNetShift = 24;
  return address.ss_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >>
                 kNetShift ==
             kNet;
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
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Within a machine nothing is congested, so the pace that some algorithms set
  // only delays. Every system has this one, which sets none.
  constexpr std::string_view kUnpaced = "reno";
  if (is_within_machine(socket))
    ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_CONGESTION,
                 kUnpaced.data(), socklen_t(kUnpaced.size()));
  return {};
}

int family_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address),
                    &size) != 0)
    return AF_UNSPEC;
  return address.ss_family;
}

}  // namespace tagflow::net
