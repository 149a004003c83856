#include "apps/bench/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "apps/bench/stopwatch.h"
#include "net/link/socket.h"

namespace tagflow::apps {
namespace {

struct Connection {
  net::Socket here, there;
};

Result<Connection> connect() {
  const net::Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Connection connection;
  connection.here =
      net::Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.descriptor(), name, size) != 0 ||
      ::listen(listener.descriptor(), 1) != 0 ||
      ::getsockname(listener.descriptor(), name, &size) != 0 ||
      ::connect(connection.here.descriptor(), name, size) != 0)
    return error(Code::kUnavailable, "[bench] no connection over loopback: {}",
                 std::strerror(errno));
  connection.there = net::Socket(
      ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  const int on = 1;
  for (const net::Socket* end : {&connection.here, &connection.there})
    ::setsockopt(end->descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return connection;
}

bool send_all(const net::Socket& socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent =
        ::send(socket.descriptor(), bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= size_t(sent);
  }
  return true;
}

bool receive_all(const net::Socket& socket, char* bytes, size_t count) {
  return ::recv(socket.descriptor(), bytes, count, MSG_WAITALL) ==
         ssize_t(count);
}

// Seconds of `here`, while another thread runs `there`.
Result<double> seconds_of_both(
    const std::function<bool(const net::Socket&)>& here,
    const std::function<bool(const net::Socket&)>& there) {
  TAGFLOW_ASSIGN(const Connection connection, connect());
  std::thread other([&] { there(connection.there); });
  auto seconds = seconds_of([&]() -> Status {
    if (here(connection.here)) return {};
    return error(Code::kUnavailable, "[bench] a connection ended: {}",
                 std::strerror(errno));
  });
  // The other one does not wait any more, whatever went wrong here.
  ::shutdown(connection.here.descriptor(), SHUT_RDWR);
  other.join();
  return seconds;
}

}  // namespace

Result<double> tcp_round_trip_seconds(int count) {
  using Message = std::array<char, 64>;
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_of_both(
          [count](const net::Socket& socket) {
            Message message{};
            for (int i = 0; i < count; ++i)
              if (!send_all(socket, message.data(), message.size()) ||
                  !receive_all(socket, message.data(), message.size()))
                return false;
            return true;
          },
          [](const net::Socket& socket) {
            Message message{};
            while (receive_all(socket, message.data(), message.size()))
              if (!send_all(socket, message.data(), message.size())) break;
            return true;
          }));
  return seconds / count;
}

Result<double> tcp_stream_seconds(size_t bytes) {
  const std::string sent(bytes, 'a');
  std::string received(bytes, 'b');
  return seconds_of_both(
      [&](const net::Socket& socket) {
        char last = 0;
        return send_all(socket, sent.data(), bytes) &&
               receive_all(socket, &last, 1);
      },
      [&](const net::Socket& socket) {
        return receive_all(socket, received.data(), bytes) &&
               send_all(socket, received.data(), 1);
      });
}

}  // namespace tagflow::apps
