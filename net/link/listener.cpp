#include "net/link/listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <iterator>
#include <list>
#include <optional>
#include <vector>

#include "graph/fault.h"
#include "net/link/door.h"
#include "net/link/handshake.h"
#include "net/link/local_door.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using StreamProtocol = Door::Protocol;

namespace {

constexpr std::chrono::seconds kBetweenRefusals{1};

}  // namespace

// Belongs to the io thread once it has started.
struct Listener::State : std::enable_shared_from_this<State> {
  using Pending = std::list<std::shared_ptr<Handshake>>;

  State(IoThread& io_thread, Options listener_options)
      : thread(io_thread),
        options(std::move(listener_options)),
        tcp_door(thread.context()),
        local_door(thread.context()) {}

  Status open();
  Status open_at(tcp::endpoint address);
  void accept(Door& door);
  void serve(StreamSocket socket);
  // Closes the oldest connection that has said nothing or, without one, the
  // oldest that has proved nothing. False if there is none.
  bool drop_stranger();
  void tell_refused(const Status& status);
  void close();

  IoThread& thread;
  Options options;
  Identity identity;
  Hello::Admit admit;
  OnConnection on_connection;
  Door tcp_door;
  Door local_door;  // see Note [The local door]
  Pending pending;  // the oldest first
  std::atomic<size_t> num_pending{0};
  bool is_closed = false;
  std::string refused;  // the last reason that was told, and when
  std::chrono::steady_clock::time_point refused_at;
};

Status Listener::State::open() {
  return open_first(
      thread.context(), {options.host, options.port, options.only_loopback},
      [this](const tcp::endpoint& address) { return open_at(address); });
}

Status Listener::State::open_at(tcp::endpoint address) {
  TAGFLOW_RETURN_IF_ERROR(tcp_door.open(address));
  identity.port = port_of(tcp_door.acceptor.native_handle());
  if (!address.address().is_loopback() || !options.has_local_door) return {};
  address.port(identity.port);
  Status status = local_door.open(local_door_of(address));
  if (!status.ok()) tcp_door.close();
  return std::move(status).with_prefix("the local door: ");
}

void Listener::State::accept(Door& door) {
  door.acceptor.async_accept([self = shared_from_this(), &door](
                                 const ErrorCode& error, StreamSocket socket) {
    if (self->is_closed) return;
    if (!error) {
      static_cast<void>(guarded([&] { self->serve(std::move(socket)); }));
      return self->accept(door);
    }
    // A stranger may hold the descriptor that is missing.
    const bool is_full = error.value() == EMFILE || error.value() == ENFILE;
    if (is_full && self->drop_stranger()) return self->accept(door);
    door.pause.expires_after(Door::kPause);
    door.pause.async_wait([self, &door](const ErrorCode&) {
      if (!self->is_closed) self->accept(door);
    });
  });
}

void Listener::State::serve(StreamSocket socket) {
  Result<Hello> hello = Hello::acceptor(identity, admit);
  if (!hello.ok()) return;
  if (pending.size() >= options.most_pending) drop_stranger();
  const std::string host = peer_host_of(socket.native_handle());
  const auto handshake = std::make_shared<Handshake>(
      thread.context(), host.empty() ? "a stranger" : "a stranger at " + host);
  handshake->socket() = std::move(socket);
  const auto place = pending.insert(pending.end(), handshake);
  num_pending = pending.size();
  handshake->start(options.hello_time,
                   [this, place](Result<Connection> connection) {
                     pending.erase(place);
                     num_pending = pending.size();
                     if (!connection.ok())
                       return tell_refused(connection.status());
                     on_connection(std::move(*connection));
                   });
  handshake->exchange(std::move(*hello), identity.tls,
                      TlsSession::Side::kAcceptor);
}

bool Listener::State::drop_stranger() {
  if (pending.empty()) return false;
  const auto silent = std::ranges::find_if_not(
      pending, &Handshake::is_greeted,
      [](const auto& each) -> const Handshake& { return *each; });
  (silent == pending.end() ? pending.front() : *silent)
      ->fail(tagflow::error(Code::kResourceExhausted, "[net|hello] too many"));
  return true;
}

// Whoever sends garbage can make up any number of reasons.
void Listener::State::tell_refused(const Status& status) {
  if (!options.on_refused || !status.message().starts_with("[net|tls]")) return;
  const auto now = std::chrono::steady_clock::now();
  if (status.message() == refused ||
      (!refused.empty() && now - refused_at < kBetweenRefusals))
    return;
  refused = status.message();
  refused_at = now;
  options.on_refused(status);
}

void Listener::State::close() {
  is_closed = true;
  tcp_door.close();
  local_door.close();
  for (const auto& handshake : pending) handshake->close();
  pending.clear();
  num_pending = 0;
}

Listener::Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Listener>> Listener::start(IoThread& thread,
                                                  Options options,
                                                  Identity identity,
                                                  Hello::Admit admit,
                                                  OnConnection on_connection) {
  return guarded("net|listener", [&]() -> Result<std::unique_ptr<Listener>> {
    TAGFLOW_RETURN_IF_ERROR(Hello::acceptor(identity, admit).status());
    const auto state = std::make_shared<State>(thread, std::move(options));
    state->identity = std::move(identity);
    state->admit = std::move(admit);
    state->on_connection = std::move(on_connection);
    TAGFLOW_RETURN_IF_ERROR(state->open());
    std::unique_ptr<Listener> listener(new Listener(state));
    thread.post([state] {
      state->accept(state->tcp_door);
      if (state->local_door.acceptor.is_open())
        state->accept(state->local_door);
    });
    return listener;
  });
}

Listener::~Listener() {
  state_->thread.call([this] { state_->close(); });
}

uint16_t Listener::port() const { return state_->identity.port; }

size_t Listener::pending() const { return state_->num_pending; }

// Belongs to the io thread once it has started.
struct Connector::State : std::enable_shared_from_this<State> {
  State(IoThread& io_thread, Options connector_options,
        std::shared_ptr<Tls> session_maker)
      : thread(io_thread),
        options(std::move(connector_options)),
        tls(std::move(session_maker)),
        resolver(thread.context()),
        handshake(std::make_shared<Handshake>(
            thread.context(),
            fmt::format("{} port {}", options.host, options.port))) {}

  void start(Result<Hello> first_hello, OnDone on_done);
  using Doors = std::vector<StreamProtocol::endpoint>;

  void resolve();
  void connect(tcp::resolver::results_type addresses);
  // Tries this door, and then those after it.
  void try_doors(Doors::const_iterator first);
  void close();

  IoThread& thread;
  const Options options;
  const std::shared_ptr<Tls> tls;
  tcp::resolver resolver;
  std::shared_ptr<Handshake> handshake;
  std::optional<Hello> hello;
  Doors doors;  // of the peer, the best first
  bool is_closed = false;
};

void Connector::State::start(Result<Hello> first_hello, OnDone on_done) {
  if (is_closed) return;
  handshake->start(options.time,
                   [self = shared_from_this(), on_done = std::move(on_done)](
                       Result<Connection> connection) {
                     // It may be resolving or connecting.
                     self->close();
                     on_done(std::move(connection));
                   });
  if (!first_hello.ok()) return handshake->fail(first_hello.status());
  hello.emplace(std::move(*first_hello));
  resolve();
}

void Connector::State::resolve() {
  resolver.async_resolve(
      options.host, std::to_string(options.port),
      tcp::resolver::numeric_service,
      [self = shared_from_this()](const ErrorCode& error,
                                  tcp::resolver::results_type addresses) {
        if (self->is_closed) return;
        if (!error) return self->connect(std::move(addresses));
        self->handshake->fail(lost(self->options.host, error.message()));
      });
}

void Connector::State::connect(tcp::resolver::results_type addresses) {
  for (const auto& entry : addresses) {
    const tcp::endpoint address = entry.endpoint();
    // CAF has to see the address of its peer.
    if (address.address().is_loopback() && options.purpose != Purpose::kControl)
      doors.emplace_back(local_door_of(address));
    doors.emplace_back(address);
  }
  try_doors(doors.cbegin());
}

void Connector::State::try_doors(Doors::const_iterator first) {
  asio::async_connect(
      handshake->socket(), first, doors.cend(),
      [self = shared_from_this()](const ErrorCode& error,
                                  Doors::const_iterator door) {
        if (self->is_closed) return;
        if (error)
          return self->handshake->fail(lost(
              fmt::format("{} port {}", self->options.host, self->options.port),
              error.message()));
        if (door->protocol().family() == AF_UNIX &&
            !is_of_this_user(self->handshake->socket().native_handle()))
          return self->try_doors(std::next(door));
        self->handshake->exchange(std::move(*self->hello), self->tls,
                                  TlsSession::Side::kConnector,
                                  self->options.host);
      });
}

void Connector::State::close() {
  is_closed = true;
  resolver.cancel();
  handshake->close();
}

Connector::Connector(IoThread& thread, Options options,
                     const Identity& identity, OnDone on_done)
    : state_(
          std::make_shared<State>(thread, std::move(options), identity.tls)) {
  thread.post([state = state_,
               hello = Hello::connector(identity, state_->options.purpose,
                                        state_->options.wanted_incarnation),
               on_done = std::move(on_done)]() mutable {
    state->start(std::move(hello), std::move(on_done));
  });
}

Connector::~Connector() {
  state_->thread.call([this] { state_->close(); });
}

}  // namespace tagflow::net
