#include "net/link/listener.h"

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <optional>
#include <vector>

#include "graph/fault.h"
#include "net/link/handshake.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

namespace {

// After an accept that failed, as for want of descriptors.
constexpr std::chrono::milliseconds kPause{20};

// The addresses at which a process may listen.
std::vector<tcp::endpoint> addresses_of(asio::io_context& context,
                                        const std::string& host, uint16_t port,
                                        ErrorCode& error) {
  if (host.empty())
    return {tcp::endpoint(tcp::v6(), port), tcp::endpoint(tcp::v4(), port)};
  std::vector<tcp::endpoint> found;
  tcp::resolver resolver(context);
  for (const auto& entry : resolver.resolve(
           host, std::to_string(port),
           tcp::resolver::passive | tcp::resolver::numeric_service, error))
    found.push_back(entry.endpoint());
  return found;
}

Status listen_at(tcp::acceptor& acceptor, const tcp::endpoint& address) {
  ErrorCode error;
  acceptor.open(address.protocol(), error);
  if (!error) close_at_exec(acceptor.native_handle());
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // Of "all addresses", those of IPv4 are a part.
  if (!error && address.protocol() == tcp::v6())
    acceptor.set_option(asio::ip::v6_only(!address.address().is_unspecified()),
                        error);
  if (!error) acceptor.bind(address, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  ErrorCode ignored;
  acceptor.close(ignored);
  return tagflow::error(Code::kUnavailable, "{}", error.message());
}

}  // namespace

// Belongs to the io thread once it has started.
struct Listener::State : std::enable_shared_from_this<State> {
  using Pending = std::list<std::shared_ptr<Handshake>>;

  State(IoThread& io_thread, Options listener_options)
      : thread(io_thread),
        options(std::move(listener_options)),
        acceptor(thread.context()),
        pause(thread.context()) {}

  Status open();
  void accept();
  void serve(tcp::socket socket);
  void close();

  IoThread& thread;
  Options options;
  Identity identity;
  Hello::Admit admit;
  OnConnection on_connection;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  Pending pending;  // the oldest first
  std::atomic<size_t> num_pending{0};
  bool is_closed = false;
};

Status Listener::State::open() {
  ErrorCode error;
  const auto addresses =
      addresses_of(thread.context(), options.host, options.port, error);
  Status status = tagflow::error(Code::kUnavailable, "{}",
                                 error ? error.message() : "no address");
  for (const tcp::endpoint& address : addresses) {
    const bool is_allowed =
        !options.only_loopback || address.address().is_loopback();
    status = is_allowed ? listen_at(acceptor, address)
                        : tagflow::error(Code::kPermissionDenied,
                                         "{} is not a loopback address",
                                         address.address().to_string());
    if (!status.ok()) continue;
    identity.port = acceptor.local_endpoint(error).port();
    return {};
  }
  return std::move(status).with_prefix(fmt::format(
      "[net|listener] cannot listen at {} port {}: ",
      options.host.empty() ? "any address" : options.host, options.port));
}

void Listener::State::accept() {
  acceptor.async_accept(
      [self = shared_from_this()](const ErrorCode& error, tcp::socket socket) {
        if (self->is_closed) return;
        if (!error) {
          static_cast<void>(guarded([&] { self->serve(std::move(socket)); }));
          return self->accept();
        }
        self->pause.expires_after(kPause);
        self->pause.async_wait([self](const ErrorCode&) {
          if (!self->is_closed) self->accept();
        });
      });
}

void Listener::State::serve(tcp::socket socket) {
  Result<Hello> hello = Hello::acceptor(identity, admit);
  if (!hello.ok()) return;
  if (pending.size() >= options.most_pending && !pending.empty())
    pending.front()->fail(
        tagflow::error(Code::kResourceExhausted, "[net|hello] too many"));
  const auto handshake =
      std::make_shared<Handshake>(thread.context(), "a stranger");
  handshake->socket() = std::move(socket);
  const auto place = pending.insert(pending.end(), handshake);
  num_pending = pending.size();
  handshake->start(options.hello_time,
                   [this, place](Result<Connection> connection) {
                     pending.erase(place);
                     num_pending = pending.size();
                     if (connection.ok()) on_connection(std::move(*connection));
                   });
  handshake->exchange(std::move(*hello));
}

void Listener::State::close() {
  is_closed = true;
  ErrorCode ignored;
  acceptor.close(ignored);
  pause.cancel(ignored);
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
    thread.post([state] { state->accept(); });
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
  State(IoThread& io_thread, Options connector_options)
      : thread(io_thread),
        options(std::move(connector_options)),
        resolver(thread.context()),
        handshake(std::make_shared<Handshake>(
            thread.context(),
            fmt::format("{} port {}", options.host, options.port))) {}

  void start(Result<Hello> first_hello, OnDone on_done);
  void resolve();
  void connect(tcp::resolver::results_type addresses);
  void close();

  IoThread& thread;
  const Options options;
  tcp::resolver resolver;
  std::shared_ptr<Handshake> handshake;
  std::optional<Hello> hello;
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
  asio::async_connect(
      handshake->socket(), addresses,
      [self = shared_from_this()](const ErrorCode& error,
                                  const tcp::endpoint&) {
        if (self->is_closed) return;
        if (!error) return self->handshake->exchange(std::move(*self->hello));
        self->handshake->fail(lost(
            fmt::format("{} port {}", self->options.host, self->options.port),
            error.message()));
      });
}

void Connector::State::close() {
  is_closed = true;
  resolver.cancel();
  handshake->close();
}

Connector::Connector(IoThread& thread, Options options,
                     const Identity& identity, OnDone on_done)
    : state_(std::make_shared<State>(thread, std::move(options))) {
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
