// Handshake: TLS, if there is any, and a Hello over a socket, with a deadline.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/link/connection.h"
#include "net/link/hello.h"
#include "net/link/tls.h"

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
  // Says hello, and calls on_done once. `host` is what was dialled.
  void exchange(Hello hello, const std::shared_ptr<Tls>& tls,
                TlsSession::Side side, const std::string& host = {});
  // Whether the peer has sent what begins as a hello does.
  bool is_greeted() const {
    return hello_ && hello_->wanted() != Greeting::kBytes;
  }
  // Ends it; on_done is called with the status, unless it was called before.
  void fail(Status status);
  // Ends it; on_done is not called any more.
  void close();

 private:
  // Each goes on when the socket is ready again.
  void look_at_plain();
  void shake();
  void write();
  void read();

  void begin();
  void send(std::string bytes);
  void receive();
  void take();
  // Only one of the two sides has TLS: ends it, and tells the peer.
  void refuse_kind();
  // What a read that has failed says about the hello.
  Status describe(const Status& failure) const;
  void wait(StreamSocket::wait_type what, void (Handshake::*next)());
  void done(Result<Connection> result);

  StreamSocket socket_;
  boost::asio::steady_timer timer_;
  std::string who_;
  OnDone on_done_;
  std::optional<Hello> hello_;
  std::shared_ptr<TlsSession> tls_;  // null: without
  std::string bytes_;                // of the frame under way
  size_t count_ = 0;                 // that are written, or read
};

}  // namespace tagflow::net
