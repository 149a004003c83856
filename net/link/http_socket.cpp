#include "net/link/http_socket.h"

#include <utility>

namespace tagflow::net {

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using Tcp = boost::asio::ip::tcp;

// --- What users have ---------------------------------------------------------

void HttpServer::WebSocket::State::post(
    void (*f)(Upgraded&, const std::shared_ptr<State>&)) {
  const std::lock_guard lock(way->mutex);
  if (way->thread == nullptr) return;
  way->thread->post([state = shared_from_this(), f] {
    std::shared_ptr<Upgraded> found;
    {
      const std::lock_guard inside(state->mutex);
      found = state->connection.lock();
    }
    if (found != nullptr) f(*found, state);
  });
}

void HttpServer::WebSocket::send(std::string text) const {
  {
    const std::lock_guard lock(state_->mutex);
    // Whoever has set the last one has posted already.
    if (std::exchange(state_->newest, std::move(text))) return;
  }
  state_->post([](Upgraded& connection, const std::shared_ptr<State>& state) {
    connection.send_newest(state);
  });
}

void HttpServer::WebSocket::close() const {
  state_->post([](Upgraded& connection, const std::shared_ptr<State>&) {
    connection.end();
  });
}

// --- The connection ----------------------------------------------------------

namespace {

// Beast's WebSockets are of TCP sockets.
Tcp::socket tcp_of(boost::asio::io_context& context,
                   boost::asio::generic::stream_protocol::socket socket) {
  const int family = socket.local_endpoint().protocol().family();
  return {context, family == Tcp::v6().family() ? Tcp::v6() : Tcp::v4(),
          socket.release()};
}

}  // namespace

HttpServer::Upgraded::Upgraded(State& server, State::Socket socket,
                               std::function<void()> on_end)
    : server_(server),
      stream_(tcp_of(server.thread.context(), std::move(socket))),
      on_end_(std::move(on_end)) {
  websocket::stream_base::timeout times{};
  times.handshake_timeout = server.options.time;
  // A client that is silent for half of it gets a ping, and must answer.
  times.idle_timeout = 2 * server.options.time;
  times.keep_alive_pings = true;
  stream_.set_option(times);
  stream_.read_message_max(server.options.most_text_bytes);
  stream_.auto_fragment(false);
}

template <class F>
auto HttpServer::Upgraded::then(F&& f) {
  return [self = shared_from_this(), f = std::forward<F>(f)](
             const ErrorCode& error, size_t count = 0) {
    if (self->is_closed_) return;
    if (error) return self->close();
    const Status done = guarded("net|http", [&] { f(count); });
    if (!done.ok()) self->close();
  };
}

void HttpServer::Upgraded::start(const Request& request, SocketEvents events) {
  events_ = std::move(events);
  stream_.async_accept(request, then([this](size_t) {
                         is_open_ = true;
                         read();
                         if (source_ != nullptr) write();
                       }));
}

void HttpServer::Upgraded::read() {
  stream_.async_read(buffer_, then([this](size_t) {
                       const auto bytes = buffer_.data();
                       std::string text(static_cast<const char*>(bytes.data()),
                                        bytes.size());
                       buffer_.consume(buffer_.size());
                       // Bytes are for nobody here.
                       if (!stream_.got_text()) return close();
                       if (events_.on_text) events_.on_text(std::move(text));
                       if (!is_closed_) read();
                     }));
}

void HttpServer::Upgraded::send_newest(
    const std::shared_ptr<WebSocket::State>& from) {
  source_ = from;
  write();
}

void HttpServer::Upgraded::write() {
  if (is_writing_ || !is_open_ || is_ending_ || is_closed_) return;
  {
    const std::lock_guard lock(source_->mutex);
    if (!source_->newest) return;
    writing_ = *std::exchange(source_->newest, std::nullopt);
  }
  is_writing_ = true;
  stream_.text(true);
  stream_.async_write(boost::asio::buffer(writing_), then([this](size_t) {
                        is_writing_ = false;
                        write();
                      }));
}

void HttpServer::Upgraded::end() {
  if (!is_open_ || is_closed_) return close();
  if (std::exchange(is_ending_, true)) return;
  stream_.async_close(websocket::close_code::going_away,
                      then([this](size_t) { close(); }));
}

void HttpServer::Upgraded::close() {
  if (std::exchange(is_closed_, true)) return;
  ErrorCode ignored;
  beast::get_lowest_layer(stream_).close(ignored);
  const SocketEvents events = std::exchange(events_, {});
  if (events.on_close) static_cast<void>(guarded("net|http", events.on_close));
  if (const auto on_end = std::exchange(on_end_, {})) on_end();
}

}  // namespace tagflow::net
