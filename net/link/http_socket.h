// HttpServer::Upgraded: a connection of an HTTP server that has become a
// WebSocket. Internal.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net/link/http_exchange.h"

namespace tagflow::net {

// Belongs to the server's thread; its exchange owns it, and handlers that wait
// in Asio.
//
// Life: made; accepting; reading, and perhaps writing; closed, once.
class HttpServer::Upgraded : public std::enable_shared_from_this<Upgraded> {
 public:
  using Request = boost::beast::http::request<boost::beast::http::empty_body>;

  // `on_end` is called when it is closed.
  Upgraded(State& server, State::Socket socket, std::function<void()> on_end);

  void start(const Request& request, SocketEvents events);
  // A text has come to the state: Note [Newest text] in http_server.h.
  void send_newest(const std::shared_ptr<WebSocket::State>& from);
  // Tells the client, and closes when it has answered.
  void end();
  void close();

 private:
  using ErrorCode = boost::system::error_code;
  template <class F>
  auto then(F&& f);
  void read();
  void write();

  State& server_;
  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> stream_;
  boost::beast::flat_buffer buffer_;
  std::function<void()> on_end_;
  SocketEvents events_;
  std::shared_ptr<WebSocket::State> source_;
  std::string writing_;
  bool is_open_ = false;  // accepted
  bool is_writing_ = false;
  bool is_ending_ = false;
  bool is_closed_ = false;
};

// Lives as long as a WebSocket, and its connection.
struct HttpServer::WebSocket::State : std::enable_shared_from_this<State> {
  explicit State(std::shared_ptr<HttpServer::State::Way> to_server)
      : way(std::move(to_server)) {}

  // Calls f(connection) on the server's thread, if both are there.
  void post(void (*f)(Upgraded&, const std::shared_ptr<State>&));

  const std::shared_ptr<HttpServer::State::Way> way;
  std::mutex mutex;  // guards the below; before that of the way
  std::weak_ptr<Upgraded> connection;
  std::optional<std::string> newest;  // not written yet
};

}  // namespace tagflow::net
