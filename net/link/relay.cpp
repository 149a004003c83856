#include "net/link/relay.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

#include "graph/fault.h"
#include "net/link/system_io.h"
#include "net/link/tls.h"

namespace tagflow::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

namespace {

// Belongs to the io thread. Handlers that wait in Asio own it.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(IoThread& thread, Socket peer, Socket here)
      : thread_(thread),
        tls_(peer.tls()),
        peer_(thread.context(), peer.release()),
        here_(thread.context(), here.release()) {}

  void start() {
    go_on(&Relay::carry_in);
    go_on(&Relay::carry_out);
  }

 private:
  static constexpr std::string_view kWho = "the peer";
  // Bytes that were read, and are not written.
  struct Bytes {
    std::array<char, size_t{16} << 10> all;
    size_t begin = 0, end = 0;

    iovec space() { return part(std::span<char>(all)); }
    iovec left() const {
      return part(std::string_view(all.data(), end).substr(begin));
    }
  };
  using Carry = Status (Relay::*)();

  // Either side may be busy with others: one piece at a time.
  void go_on(Carry carry) {
    if (!peer_.is_open()) return;
    const Status status = guarded("net|link", [&] { return (this->*carry)(); });
    if (status.ok()) return;
    ErrorCode ignored;
    peer_.close(ignored);
    here_.close(ignored);
  }
  void wait(Descriptor& descriptor, Descriptor::wait_type what, Carry carry) {
    descriptor.async_wait(
        what, [self = shared_from_this(), carry](const ErrorCode& error) {
          if (!error) self->go_on(carry);
        });
  }
  void post(Carry carry) {
    thread_.post([self = shared_from_this(), carry] { self->go_on(carry); });
  }

  Status carry_in() {
    if (in_.begin == in_.end) {
      iovec space = in_.space();
      TAGFLOW_ASSIGN(const auto count, tls_->read_some({&space, 1}, kWho));
      if (!count) {
        wait(peer_, Descriptor::wait_read, &Relay::carry_in);
        return {};
      }
      in_.begin = 0;
      in_.end = *count;
    }
    iovec left = in_.left();
    TAGFLOW_ASSIGN(const size_t count,
                   write_some(here_.native_handle(), {&left, 1}, kWho));
    in_.begin += count;
    if (count == 0) {
      wait(here_, Descriptor::wait_write, &Relay::carry_in);
    } else {
      post(&Relay::carry_in);
    }
    return {};
  }

  Status carry_out() {
    if (out_.begin == out_.end) {
      iovec space = out_.space();
      TAGFLOW_ASSIGN(const auto count,
                     read_some(here_.native_handle(), {&space, 1}, kWho));
      if (!count) {
        wait(here_, Descriptor::wait_read, &Relay::carry_out);
        return {};
      }
      out_.begin = 0;
      out_.end = *count;
    }
    iovec left = out_.left();
    TAGFLOW_ASSIGN(const size_t count, tls_->write_some({&left, 1}, kWho));
    out_.begin += count;
    if (count == 0) {
      wait(peer_, Descriptor::wait_write, &Relay::carry_out);
    } else {
      post(&Relay::carry_out);
    }
    return {};
  }

  IoThread& thread_;
  const std::shared_ptr<TlsSession> tls_;
  Descriptor peer_;
  Descriptor here_;
  Bytes in_, out_;
};

}  // namespace

Result<Socket> without_tls(IoThread& thread, Socket socket) {
  if (socket.tls() == nullptr) return socket;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   ends) != 0)
    return error(Code::kResourceExhausted, "[net|link] no pair of sockets: {}",
                 std::strerror(errno));
  Socket plain(ends[0]), here(ends[1]);
  TAGFLOW_RETURN_IF_ERROR(prepare_socket(socket));
  thread.post(
      [relay = std::make_shared<Relay>(thread, std::move(socket),
                                       std::move(here))] { relay->start(); });
  return plain;
}

}  // namespace tagflow::net
