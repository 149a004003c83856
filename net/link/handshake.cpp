#include "net/link/handshake.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "graph/fault.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

// The first bytes of what TLS sends: a kind, and the version of the record.
constexpr char kAlert = 21, kHandshake = 22, kVersion = 3;

bool is_tls(std::string_view bytes) {
  return bytes.size() > 1 && (bytes[0] == kAlert || bytes[0] == kHandshake) &&
         bytes[1] == kVersion;
}

}  // namespace

void Handshake::start(std::chrono::steady_clock::duration time,
                      OnDone on_done) {
  on_done_ = std::move(on_done);
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this(), time](const ErrorCode& error) {
    if (error) return;
    self->fail(
        lost(self->who_,
             fmt::format("{} within {} s",
                         self->hello_ ? "the peer did not finish the hello"
                                      : "there was no connection",
                         std::chrono::duration<double>(time).count())));
  });
}

void Handshake::exchange(Hello hello, const std::shared_ptr<Tls>& tls,
                         TlsSession::Side side, const std::string& host) {
  hello_.emplace(std::move(hello));
  close_at_exec(socket_.native_handle());
  ErrorCode ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.native_non_blocking(true, ignored);
  if (tls == nullptr) return begin();
  auto session = guarded("net|tls", [&] {
    return tls->start(socket_.native_handle(), side, host);
  });
  if (!session.ok()) return fail(std::move(session).status());
  tls_ = std::move(*session);
  if (side == TlsSession::Side::kAcceptor) return look_at_plain();
  shake();
}

void Handshake::look_at_plain() {
  char first = 0;
  const ssize_t count =
      ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return wait(StreamSocket::wait_read, &Handshake::look_at_plain);
  if (count < 0) return fail(lost_by_errno(who_));
  if (count == 0) return fail(lost(who_, "the peer ended the hello"));
  if (first == kHandshake) return shake();
  refuse_kind();
}

void Handshake::refuse_kind() {
  // What was not read would make the end overtake the alert.
  std::array<char, 4096> unread;
  while (::recv(socket_.native_handle(), unread.data(), unread.size(),
                MSG_DONTWAIT) > 0) {
  }
  // A fatal alert about the version of the protocol, without TLS.
  constexpr std::string_view kWrongVersion("\x15\x03\x03\x00\x02\x02\x46", 7);
  iovec alert = part(kWrongVersion);
  static_cast<void>(write_some(socket_.native_handle(), {&alert, 1}, who_));
  fail(other_kind(tls_ != nullptr, who_));
}

void Handshake::shake() {
  const auto wants = guarded("net|tls", [&] { return tls_->shake(who_); });
  if (!wants.ok()) return fail(wants.status());
  if (*wants == TlsSession::Wants::kRead)
    return wait(StreamSocket::wait_read, &Handshake::shake);
  if (*wants == TlsSession::Wants::kWrite)
    return wait(StreamSocket::wait_write, &Handshake::shake);
  const Status bound = guarded("net|tls", [&]() -> Status {
    TAGFLOW_ASSIGN(TlsPeer peer, tls_->peer());
    hello_->bind(std::move(peer));
    return {};
  });
  if (!bound.ok()) return fail(bound);
  begin();
}

void Handshake::begin() { send(hello_->first()); }

void Handshake::wait(StreamSocket::wait_type what, void (Handshake::*next)()) {
  socket_.async_wait(what,
                     [self = shared_from_this(), next](const ErrorCode& error) {
                       // Later a descriptor of this number is another one.
                       if (!error && self->socket_.is_open()) ((*self).*next)();
                     });
}

void Handshake::send(std::string bytes) {
  bytes_ = std::move(bytes);
  count_ = 0;
  write();
}

void Handshake::write() {
  while (count_ < bytes_.size()) {
    iovec rest = part(std::string_view(bytes_).substr(count_));
    const auto count =
        write_some(tls_.get(), socket_.native_handle(), {&rest, 1}, who_);
    if (!count.ok()) return fail(count.status());
    if (*count == 0) return wait(StreamSocket::wait_write, &Handshake::write);
    count_ += *count;
  }
  if (hello_->wanted() != 0) return receive();
  if (!hello_->refusal().ok()) return fail(hello_->refusal());
  done(Connection{hello_->peer(), Socket(socket_.release(), std::move(tls_))});
}

void Handshake::receive() {
  bytes_.resize(hello_->wanted());
  count_ = 0;
  read();
}

void Handshake::read() {
  while (count_ < bytes_.size()) {
    iovec rest = part(std::span<char>(bytes_).subspan(count_));
    const auto count =
        read_some(tls_.get(), socket_.native_handle(), {&rest, 1}, who_);
    if (!count.ok()) return fail(describe(count.status()));
    if (!*count) return wait(StreamSocket::wait_read, &Handshake::read);
    count_ += **count;
    // Only a greeting has a first byte that is known: proofs begin with any.
    const bool is_greeting = bytes_.size() == Greeting::kBytes;
    if (tls_ == nullptr && is_greeting &&
        is_tls(std::string_view(bytes_).substr(0, count_)))
      return refuse_kind();
  }
  take();
}

Status Handshake::describe(const Status& failure) const {
  if (failure.message() != closed_by(who_).message()) return failure;
  if (!hello_->has_proved()) return lost(who_, "the peer ended the hello");
  return error(Code::kUnauthenticated,
               "[net|hello] {}: the peer ended the hello, as it does if the "
               "secrets differ, or if it has waited for too long",
               who_);
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
