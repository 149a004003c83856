// Relay: a connection with TLS, for who reads and writes a descriptor.
#pragma once

#include "net/link/io_thread.h"
#include "net/link/socket.h"

namespace tagflow::net {

// The socket itself if it is without TLS. Else another one, within the process:
// the thread, which outlives the connection, carries what is written to it to
// the peer, and back, until either side closes. Costs two descriptors and a
// copy, so it is for what is rare. ResourceExhausted if the system gives no
// descriptors. May throw std::bad_alloc. Thread-safe.
Result<Socket> without_tls(IoThread& thread, Socket socket);

}  // namespace tagflow::net
