// What tests of links share: threads, connected sockets, and values that one
// thread waits for and another one brings.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "net/link/io_thread.h"
#include "net/link/socket.h"
#include "net/wire/messages.h"
#include "tests/net/link/test_certificates.h"

namespace tagflow::net {

// Long enough for anything that happens at all.
inline constexpr std::chrono::seconds kNever{120};

// Values in the order in which they were put. Thread-safe.
template <class T>
class FrameInbox {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  // The next one. The test fails if none comes.
  T take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, kNever, [&] { return !values_.empty(); }));
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

inline std::unique_ptr<IoThread> start_thread(const char* name = "test") {
  auto thread = IoThread::start(name);
  REQUIRE(thread.ok());
  return std::move(*thread);
}

inline sockaddr_in loopback_address(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port at which nobody listens. Only a listener that asks for it by its
// number gets it, since both let others reuse it.
inline Socket bind_a_port() {
  Socket bound(::socket(AF_INET, SOCK_STREAM, 0));
  const int reuse = 1;
  REQUIRE(::setsockopt(bound.descriptor(), SOL_SOCKET, SO_REUSEADDR, &reuse,
                       sizeof(reuse)) == 0);
  const sockaddr_in address = loopback_address(0);
  REQUIRE(::bind(bound.descriptor(),
                 reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0);
  return bound;
}

// A port that is free, at which nobody accepts yet.
inline Socket listen_at_a_port() {
  Socket listener(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback_address(0);
  REQUIRE(::bind(listener.descriptor(),
                 reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) == 0);
  REQUIRE(::listen(listener.descriptor(), SOMAXCONN) == 0);
  return listener;
}

// A connection to the port of this machine.
inline Socket dial(uint16_t port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback_address(port);
  REQUIRE(::connect(socket.descriptor(),
                    reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)) == 0);
  return socket;
}

// Both ends of a TCP connection.
inline std::pair<Socket, Socket> connected_sockets() {
  const Socket listener = listen_at_a_port();
  Socket first = dial(port_of(listener.descriptor()));
  Socket second(::accept(listener.descriptor(), nullptr, nullptr));
  return {std::move(first), std::move(second)};
}

// Both ends of a connection by a local door.
inline std::pair<Socket, Socket> local_sockets() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// Both ends of a connection with TLS.
inline std::pair<Socket, Socket> tls_sockets() {
  auto [first, second] = connected_sockets();
  using Side = TlsSession::Side;
  std::shared_ptr<TlsSession> sessions[2];
  for (const Socket* socket : {&first, &second}) {
    REQUIRE(prepare_socket(*socket).ok());
    const bool is_first = socket == &first;
    auto session =
        (is_first ? master_tls() : worker_tls(0))
            ->start(socket->descriptor(),
                    is_first ? Side::kConnector : Side::kAcceptor, "localhost");
    REQUIRE(session.ok());
    sessions[is_first ? 0 : 1] = *session;
  }
  for (int done = 0; done < 2;) {
    done = 0;
    for (const auto& session : sessions) {
      const auto wants = session->shake("the peer");
      INFO(wants.status().to_string());
      REQUIRE(wants.ok());
      done += *wants == TlsSession::Wants::kNothing ? 1 : 0;
    }
  }
  return {Socket(first.release(), sessions[0]),
          Socket(second.release(), sessions[1])};
}

// Calls a test with each kind of connections.
template <class F>
void over_each_kind_of_socket(F&& test) {
  for (const auto connect : {connected_sockets, local_sockets, tls_sockets}) {
    CAPTURE((connect == local_sockets));
    CAPTURE((connect == tls_sockets));
    test(connect);
  }
}

// Writes all of it; whether the other end took it. For a socket that waits.
inline bool write_all(const Socket& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(size_t(count));
  }
  return true;
}

// The next bytes, as many as that; fewer if the other end closes before.
inline std::string read_exactly(const Socket& socket, size_t count) {
  std::string bytes(count, '\0');
  size_t got = 0;
  while (got < count) {
    const ssize_t n =
        ::recv(socket.descriptor(), bytes.data() + got, count - got, 0);
    if (n <= 0) break;
    got += size_t(n);
  }
  bytes.resize(got);
  return bytes;
}

// Waits until the other end has closed; what it sent before.
inline std::string read_to_end(const Socket& socket) {
  return read_exactly(socket, size_t{1} << 20);
}

// Waits until the other end has reset the connection, and reads nothing.
inline bool is_reset(const Socket& socket) {
  pollfd poll{socket.descriptor(), 0, 0};
  constexpr std::chrono::milliseconds kMost = kNever;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::poll(&poll, 1, int(kMost.count())) == 1 &&
         ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error,
                      &size) == 0 &&
         error == ECONNRESET;
}

// The next frame that is not a Ping, as a Pong.
inline Result<Pong> read_pong(const Socket& socket) {
  std::string frame;
  while (frame.empty() || FrameKind(frame[0]) == FrameKind::kPing) {
    frame = read_exactly(socket, kFrameHeader);
    frame += read_exactly(socket, uint8_t(frame[4]));
  }
  return parse_body<Pong>(frame.substr(kFrameHeader));
}

inline bool mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

}  // namespace tagflow::net
