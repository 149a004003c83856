#include "net/link/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tagflow::net {

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
