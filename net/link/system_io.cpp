#include "net/link/system_io.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace tagflow::net {
namespace {

bool has_to_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

msghdr message_of(std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return message;
}

}  // namespace

Status lost(std::string_view who, std::string_view what) {
  return error(Code::kUnavailable, "[net|link] {}: {}", who, what);
}

Status closed_by(std::string_view who) {
  return lost(who, "the peer closed the connection");
}

Status lost_by_errno(std::string_view who) {
  return lost(who, std::generic_category().message(errno));
}

Status name_peer(const Status& status, std::string_view who) {
  if (status.message().find(who) != std::string_view::npos) return status;
  return Status(status).with_prefix(fmt::format("{}: ", who));
}

Result<size_t> write_some(int socket, std::span<iovec> from,
                          std::string_view who) {
  const msghdr message = message_of(from);
  const ssize_t count =
      ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) return size_t(count);
  if (has_to_wait()) return size_t{0};
  return lost_by_errno(who);
}

Result<std::optional<size_t>> read_some(int socket, std::span<iovec> to,
                                        std::string_view who) {
  msghdr message = message_of(to);
  const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (count > 0) return std::optional<size_t>(size_t(count));
  if (count == 0) return closed_by(who);
  if (has_to_wait()) return std::optional<size_t>();
  return lost_by_errno(who);
}

void reset_at_close(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void close_at_exec(int socket) { ::fcntl(socket, F_SETFD, FD_CLOEXEC); }

}  // namespace tagflow::net
