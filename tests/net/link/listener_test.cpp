#include "net/link/listener.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "net/link/crypto.h"
#include "tests/net/link/identity.h"
#include "tests/net/link/loopback.h"
#include "tests/skip.h"

namespace tagflow::net {
namespace {

// A listener, and what it hands on.
struct Port {
  explicit Port(Listener::Options options = {},
                Hello::Admit admit = admit_all) {
    auto started = Listener::start(
        *thread, std::move(options), identity, std::move(admit),
        [this](Connection connection) { peers.put(std::move(connection)); });
    REQUIRE(started.ok());
    listener = std::move(*started);
  }
  // Waits until so many connections are in their hello.
  void wait_for_pending(size_t count) const {
    while (listener->pending() != count)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::unique_ptr<IoThread> thread = start_thread();
  Identity identity = identity_of(0, Role::kMaster);
  FrameInbox<Connection> peers;
  std::unique_ptr<Listener> listener;
};

bool has_ipv6() {
  const Socket socket(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return ::bind(socket.descriptor(),
                reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0;
}

Result<Connection> connect(const Identity& identity,
                           Connector::Options options) {
  const auto thread = start_thread();
  FrameInbox<Result<Connection>> results;
  const Connector connector(
      *thread, std::move(options), identity,
      [&](Result<Connection> result) { results.put(std::move(result)); });
  return results.take();
}

Result<Connection> connect(const Identity& identity, const Port& port,
                           Purpose purpose = Purpose::kSmall) {
  return connect(identity, {"localhost", port.listener->port(), purpose});
}

TEST_CASE("connections are handed on with who is there, and what for") {
  Port port;
  for (Purpose purpose : {Purpose::kControl, Purpose::kSmall, Purpose::kBulk}) {
    const Identity worker = identity_of(7);
    const auto connection = connect(worker, port, purpose);
    REQUIRE(connection.ok());
    CHECK(connection->peer.role == Role::kMaster);
    CHECK(connection->peer.port == port.listener->port());
    const Connection accepted = port.peers.take();
    CHECK(accepted.peer.task == worker.task);
    CHECK(accepted.peer.purpose == purpose);
    CHECK(accepted.peer.incarnation == worker.incarnation);
    // The sockets are of each other, and nothing of the hello is left in them.
    // They do not wait: as many tries as it needs.
    CHECK(write_all(connection->socket, "x"));
    std::string byte;
    while (byte.empty()) byte = read_exactly(accepted.socket, 1);
    CHECK(byte == "x");
  }
}

// How many sockets a process would have that this one started.
size_t num_inherited() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::error_code error; std::filesystem::is_socket(entry, error))
      if ((::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) ==
          0)
        ++count;
  return count;
}

TEST_CASE("a process that is started has neither the port nor a connection") {
  const size_t before = num_inherited();
  Port port;
  const auto connection = connect(identity_of(7), port);
  REQUIRE(connection.ok());
  const Connection accepted = port.peers.take();
  CHECK(num_inherited() == before);
}

TEST_CASE("a port that is taken is an error that names it") {
  const Port port;
  Listener::Options options;
  options.port = port.listener->port();
  const auto second = Listener::start(*port.thread, options, identity_of(1),
                                      admit_all, [](Connection) {});
  CHECK(second.status().code() == Code::kUnavailable);
  CHECK(mentions(second.status(),
                 fmt::format("[net|listener] cannot listen at localhost port "
                             "{}: Address already in use",
                             options.port)));
  options.host = "no such host.invalid";
  CHECK(mentions(Listener::start(*port.thread, options, identity_of(1),
                                 admit_all, [](Connection) {})
                     .status(),
                 "cannot listen at no such host.invalid port"));
}

bool is_local(const Connection& connection) {
  return family_of(connection.socket) == AF_UNIX;
}

TEST_CASE("processes of one machine meet at a local door, if there is one") {
  Port port;
  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto connection =
        connect(identity_of(7), {host, port.listener->port()});
    REQUIRE(connection.ok());
    CHECK(is_local(*connection));
    CHECK(is_local(port.peers.take()));
  }
  // The address of a member is that from which it came.
  const auto control = connect(identity_of(7), port, Purpose::kControl);
  REQUIRE(control.ok());
  CHECK_FALSE(is_local(*control));

  Listener::Options options;
  options.has_local_door = false;
  const Port tcp(options);
  const auto connection = connect(identity_of(7), tcp);
  REQUIRE(connection.ok());
  CHECK_FALSE(is_local(*connection));
}

// A socket with the name of the local door at 127.0.0.1 and that port.
Socket take_door(uint16_t port) {
  Socket taken(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("tagflow 127.0.0.1 {}", port);
  name.copy(address.sun_path + 1, name.size());
  REQUIRE(
      ::bind(taken.descriptor(), reinterpret_cast<const sockaddr*>(&address),
             socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size())) ==
      0);
  return taken;
}

TEST_CASE("a connector passes by the local door of another user") {
  if (::geteuid() != 0) return skip_test_case("only root can be another user");
  Listener::Options options;
  options.host = "127.0.0.1";
  options.has_local_door = false;
  const Port port(options);
  const Socket taken = take_door(port.listener->port());
  constexpr int kStranger = 12345, kWaiting = 10;
  REQUIRE(::seteuid(kStranger) == 0);
  const int listening = ::listen(taken.descriptor(), kWaiting);
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(listening == 0);
  const auto connection =
      connect(identity_of(7), {"127.0.0.1", port.listener->port()});
  REQUIRE(connection.ok());
  CHECK_FALSE(is_local(*connection));
}

TEST_CASE("another process at the local door keeps a listener from its port") {
  const Socket bound = bind_a_port();
  const uint16_t port = port_of(bound.descriptor());
  const Socket taken = take_door(port);
  const auto thread = start_thread();
  Listener::Options options;
  options.host = "127.0.0.1";
  options.port = port;
  const auto start = [&] {
    return Listener::start(*thread, options, identity_of(1), admit_all,
                           [](Connection) {})
        .status();
  };
  CHECK(start().code() == Code::kUnavailable);
  CHECK(mentions(start(), "the local door: Address already in use"));
  options.has_local_door = false;
  CHECK(start().ok());
}

TEST_CASE("a listener of all addresses is found by name and by address") {
  Listener::Options options;
  options.host = "";
  const Port port(options);
  for (const char* host : {"localhost", "127.0.0.1"}) {
    CAPTURE(host);
    CHECK(connect(identity_of(1), {host, port.listener->port()}).ok());
  }
}

TEST_CASE("a listener of loopback alone refuses all other addresses") {
  const auto thread = start_thread();
  Listener::Options options;
  options.only_loopback = true;
  const auto status_at = [&](const char* host) {
    options.host = host;
    return Listener::start(*thread, options, identity_of(1), admit_all,
                           [](Connection) {})
        .status();
  };
  CHECK(status_at("localhost").ok());
  CHECK(status_at("127.0.0.1").ok());
  for (const char* host : {"", "0.0.0.0", "192.0.2.1"}) {
    CAPTURE(host);
    CHECK(status_at(host).code() == Code::kPermissionDenied);
    CHECK(mentions(status_at(host), "is not a loopback address"));
  }
}

TEST_CASE("a listener is found by IPv6") {
  if (!has_ipv6()) return skip_test_case("this machine has no IPv6");
  for (const char* host : {"", "::1"}) {
    CAPTURE(host);
    Listener::Options options;
    options.host = host;
    const Port port(options);
    CHECK(connect(identity_of(1), {"::1", port.listener->port()}).ok());
  }
}

TEST_CASE("a refusal reaches the connector in words, and nobody is handed on") {
  Port port({}, [](const Greeting& peer) {
    return error(Code::kAlreadyExists, "{} is there already",
                 peer.task.to_string());
  });
  const auto refused = connect(identity_of(4), port);
  CHECK(mentions(refused.status(), "refuses: /job:worker/task:4 is there"));
  Identity other = identity_of(5);
  other.secret = "another secret";
  const auto wrong = connect(other, port);
  CHECK(wrong.status().code() == Code::kUnauthenticated);
  CHECK(mentions(wrong.status(), "as it does if the secrets differ"));
  CHECK(port.peers.size() == 0);
}

TEST_CASE("strangers get no answer to garbage, and zeros for a false proof") {
  Port port;
  const Socket garbage = dial(port.listener->port());
  CHECK(write_all(garbage, std::string(Greeting::kBytes, 'x')));
  CHECK(read_to_end(garbage).empty());
  const Socket liar = dial(port.listener->port());
  const auto hello = Hello::connector(identity_of(1), Purpose::kSmall);
  CHECK(write_all(liar, hello->first() + std::string(32, 'x')));
  CHECK(read_to_end(liar).substr(Greeting::kBytes) == std::string(96, '\0'));
  CHECK(connect(identity_of(2), port).ok());
}

TEST_CASE("peers that leave in any phase of the hello leave nothing behind") {
  Port port;
  const std::string greeting =
      Hello::connector(identity_of(1), Purpose::kSmall)->first();
  for (size_t bytes : {0, 1, 100, 192, 193, 223}) {
    std::vector<Socket> sockets;
    for (int i = 0; i < 10; ++i) {
      sockets.push_back(dial(port.listener->port()));
      CHECK(write_all(sockets.back(),
                      (greeting + std::string(32, 'x')).substr(0, bytes)));
    }
    port.wait_for_pending(10);
    sockets.clear();
    port.wait_for_pending(0);
  }
  CHECK(connect(identity_of(2), port).ok());
}

TEST_CASE("a hello that is too slow ends at its deadline") {
  Listener::Options options;
  options.hello_time = std::chrono::milliseconds(100);
  Port port(options);
  const Socket silent = dial(port.listener->port());
  const Socket slow = dial(port.listener->port());
  const std::string greeting =
      Hello::connector(identity_of(1), Purpose::kSmall)->first();
  // A byte now and then is no life sign: one deadline holds for all of it.
  std::thread writer([&] {
    for (char byte : greeting + std::string(1000, 'x')) {
      if (!write_all(slow, {&byte, 1})) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  CHECK(read_to_end(silent).empty());
  read_to_end(slow);
  writer.join();
  port.wait_for_pending(0);
}

TEST_CASE("a thousand idle connections hold 64 sockets, and keep nobody out") {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kNeeded = 1300;
  if (limit.rlim_cur < kNeeded && limit.rlim_max >= kNeeded) {
    limit.rlim_cur = kNeeded;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur < kNeeded)
    return skip_test_case("a process has too few descriptors here");
  Listener::Options options;
  options.hello_time = std::chrono::hours(1);
  Port port(options);
  std::vector<Socket> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(dial(port.listener->port()));
  // All of them have come when so many of the oldest are closed.
  for (size_t i = 0; i < idle.size() - options.most_pending; ++i)
    CHECK(read_to_end(idle[i]).empty());
  port.wait_for_pending(options.most_pending);
  CHECK(connect(identity_of(1), port).ok());
  // The newest are there.
  CHECK(port.listener->pending() <= options.most_pending);
  CHECK(::recv(idle.back().descriptor(), idle.data(), 1, MSG_DONTWAIT) == -1);
}

TEST_CASE("connections that say nothing do not close one that has greeted") {
  Listener::Options options;
  options.hello_time = std::chrono::hours(1);
  Port port(options);
  const Identity identity = identity_of(7);
  auto hello = Hello::connector(identity, Purpose::kSmall);
  REQUIRE(hello.ok());
  const Socket peer = dial(port.listener->port());
  CHECK(write_all(peer, hello->first()));
  const std::string greeting = read_exactly(peer, hello->wanted());
  std::vector<Socket> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(dial(port.listener->port()));
  for (size_t i = 0; i <= idle.size() - options.most_pending; ++i)
    CHECK(read_to_end(idle[i]).empty());
  const auto proof = hello->take(greeting);
  REQUIRE(proof.ok());
  CHECK(write_all(peer, *proof));
  CHECK(port.peers.take().peer.incarnation == identity.incarnation);
}

TEST_CASE("strangers hold no descriptor that a peer needs") {
  Listener::Options options;
  options.hello_time = std::chrono::hours(1);
  Port port(options);
  std::vector<Socket> sockets;
  for (int i = 0; i < 40; ++i)
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
  // A few more, for the listener.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = rlim_t(sockets.back().descriptor()) + 8;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const sockaddr_in address = loopback_address(port.listener->port());
  for (const Socket& socket : sockets)
    CHECK(::connect(socket.descriptor(),
                    reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)) == 0);
  // The last one is no stranger.
  const Identity identity = identity_of(7);
  auto hello = Hello::connector(identity, Purpose::kSmall);
  REQUIRE(hello.ok());
  CHECK(write_all(sockets.back(), hello->first()));
  const std::string greeting = read_exactly(sockets.back(), hello->wanted());
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(greeting.size() == Greeting::kBytes);
  const auto proof = hello->take(greeting);
  REQUIRE(proof.ok());
  CHECK(write_all(sockets.back(), *proof));
  CHECK(port.peers.take().peer.incarnation == identity.incarnation);
}

TEST_CASE("a connector says why there is no connection") {
  const Socket bound = bind_a_port();
  const uint16_t port = port_of(bound.descriptor());
  const auto nobody = connect(identity_of(1), {"localhost", port});
  CHECK(nobody.status().code() == Code::kUnavailable);
  CHECK(mentions(nobody.status(),
                 fmt::format("localhost port {}: Connection refused", port)));
  const auto nowhere = connect(identity_of(1), {"nowhere.invalid", 1});
  CHECK((nowhere.status().code() == Code::kUnavailable ||
         nowhere.status().code() == Code::kDeadlineExceeded));
  CHECK(mentions(nowhere.status(), "nowhere.invalid"));

  // Somebody who accepts, and says nothing.
  const auto [ours, theirs] = connected_sockets();
  const Socket silent(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = loopback_address(0);
  socklen_t size = sizeof(address);
  auto* at = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(silent.descriptor(), at, size) == 0);
  REQUIRE(::listen(silent.descriptor(), 1) == 0);
  REQUIRE(::getsockname(silent.descriptor(), at, &size) == 0);
  Connector::Options options{"127.0.0.1", ntohs(address.sin_port)};
  options.time = std::chrono::milliseconds(50);
  const auto late = connect(identity_of(1), options);
  CHECK(late.status().code() == Code::kUnavailable);
  // A busy machine may not even have connected by then.
  CHECK((mentions(late.status(), "the peer did not finish the hello within") ||
         mentions(late.status(), "there was no connection within")));
  CHECK(mentions(late.status(), "within 0.05 s"));
}

TEST_CASE("listeners and connectors may end while a hello goes on") {
  auto port = std::make_unique<Port>();
  std::vector<Socket> idle;
  for (int i = 0; i < 5; ++i) idle.push_back(dial(port->listener->port()));
  port->wait_for_pending(5);
  port->listener.reset();
  for (const Socket& socket : idle) CHECK(read_to_end(socket).empty());

  const auto thread = start_thread();
  for (int i = 0; i < 50; ++i) {
    const Port other;
    // It may be at any of its stages.
    const Connector connector(*thread, {"localhost", other.listener->port()},
                              identity_of(1), [](Result<Connection>) {});
  }
}

TEST_CASE("a connector may be destroyed by its own handler") {
  const Port port;
  const auto thread = start_thread();
  FrameInbox<bool> done;
  std::unique_ptr<Connector> connector;
  thread->call([&] {
    connector = std::make_unique<Connector>(
        *thread, Connector::Options{"localhost", port.listener->port()},
        identity_of(1), [&](Result<Connection> connection) {
          connector.reset();
          done.put(connection.ok());
        });
  });
  CHECK(done.take());
}

}  // namespace
}  // namespace tagflow::net
