#include "net/link/handshake.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "graph/fault.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

void Handshake::start(std::chrono::steady_clock::duration time,
                      OnDone on_done) {
  on_done_ = std::move(on_done);
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->fail(lost(self->who_, "the peer is too slow"));
  });
}

void Handshake::exchange(Hello hello) {
  hello_.emplace(std::move(hello));
  close_at_exec(socket_.native_handle());
  ErrorCode ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  send(hello_->first());
}

void Handshake::send(std::string bytes) {
  bytes_ = std::move(bytes);
  asio::async_write(
      socket_, asio::buffer(bytes_),
      [self = shared_from_this()](const ErrorCode& error, size_t) {
        if (error) return self->fail(lost(self->who_, error.message()));
        if (self->hello_->wanted() != 0) return self->receive();
        if (!self->hello_->refusal().ok())
          return self->fail(self->hello_->refusal());
        self->done(
            Connection{self->hello_->peer(), Socket(self->socket_.release())});
      });
}

void Handshake::receive() {
  bytes_.resize(hello_->wanted());
  asio::async_read(
      socket_, asio::buffer(bytes_),
      [self = shared_from_this()](const ErrorCode& error, size_t) {
        if (!error) return self->take();
        if (error != asio::error::eof)
          return self->fail(lost(self->who_, error.message()));
        if (!self->hello_->has_proved())
          return self->fail(lost(self->who_, "the peer ended the hello"));
        self->fail(tagflow::error(Code::kUnauthenticated,
                                  "[net|hello] {}: the peer ended the hello, "
                                  "as it does if the secrets differ",
                                  self->who_));
      });
}

void Handshake::take() {
  auto answer = guarded("net|hello", [&] { return hello_->take(bytes_); });
  if (!answer.ok()) return fail(std::move(answer).status());
  send(std::move(*answer));
}

void Handshake::fail(Status status) { done(std::move(status)); }

void Handshake::close() {
  on_done_ = {};
  ErrorCode ignored;
  timer_.cancel(ignored);
  socket_.close(ignored);
}

void Handshake::done(Result<Connection> result) {
  // on_done may own this.
  const auto self = shared_from_this();
  const OnDone on_done = std::exchange(on_done_, {});
  close();
  if (on_done) static_cast<void>(guarded([&] { on_done(std::move(result)); }));
}

}  // namespace tagflow::net
