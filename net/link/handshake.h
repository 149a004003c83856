// Handshake: a Hello over a socket, with a deadline.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/link/connection.h"
#include "net/link/hello.h"

namespace tagflow::net {

// Of TCP, or within the machine: see Note [The local door].
using StreamSocket = boost::asio::generic::stream_protocol::socket;

// For listeners and connectors. Belongs to its io thread. Handlers that wait in
// Asio own it.
class Handshake : public std::enable_shared_from_this<Handshake> {
 public:
  using OnDone = std::function<void(Result<Connection>)>;

  // `who` is the peer, in errors.
  Handshake(boost::asio::io_context& context, std::string who)
      : socket_(context), timer_(context), who_(std::move(who)) {}

  // The socket, to be connected before exchange().
  StreamSocket& socket() { return socket_; }
  // The deadline of all that follows. At its end, on_done has DeadlineExceeded.
  void start(std::chrono::steady_clock::duration time, OnDone on_done);
  // Says hello, and calls on_done once.
  void exchange(Hello hello);
  // Ends it; on_done is called with the status, unless it was called before.
  void fail(Status status);
  // Ends it; on_done is not called any more.
  void close();

 private:
  void send(std::string bytes);
  void receive();
  void take();
  void done(Result<Connection> result);

  StreamSocket socket_;
  boost::asio::steady_timer timer_;
  std::string who_;
  OnDone on_done_;
  std::optional<Hello> hello_;
  std::string bytes_;  // of the frame under way
};

}  // namespace tagflow::net
