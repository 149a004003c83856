// Reads and writes of a socket that do not wait.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::net {

// Unavailable "[net|link] WHO: WHAT".
Status lost(std::string_view who, std::string_view what);
// The same of a peer that has closed the connection.
Status closed_by(std::string_view who);
// WHAT is the system's text for errno.
Status lost_by_errno(std::string_view who);

// The status with "WHO: " before its message, unless that has the name.
Status name_peer(const Status& status, std::string_view who);

// How many bytes the socket took; none if it has no room. `who` is the peer, in
// errors. REQUIRES: there is a byte to be written
Result<size_t> write_some(int socket, std::span<iovec> from,
                          std::string_view who);
// How many bytes have arrived; nothing if none has. An error if the peer closed
// the connection. REQUIRES: there is room for a byte
Result<std::optional<size_t>> read_some(int socket, std::span<iovec> to,
                                        std::string_view who);

// Its close() will drop what is not sent, and tell the peer at once. Otherwise
// the end comes after all that was sent before: never, if the peer does not
// read, or if what it acknowledges is lost on its way.
void reset_at_close(int socket);
// No process that this one starts gets it: that would keep a port or a
// connection, and a peer would not learn that it has been closed. Asio sets no
// such flag itself.
void close_at_exec(int socket);

inline iovec part(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}
inline iovec part(std::span<char> bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace tagflow::net
