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
        peer_(thread, std::move(peer)),
        here_(thread, std::move(here)) {}

  void start() {
    go_on(in_);
    go_on(out_);
  }

 private:
  static constexpr std::string_view kWho = "the peer";

  struct End {
    End(IoThread& thread, Socket socket)
        : tls(socket.tls()), stream(thread.context(), socket.release()) {}

    const std::shared_ptr<TlsSession> tls;  // null: without
    Descriptor stream;
  };
  // One direction, with the bytes that were read, and are not written.
  struct Way {
    iovec space() { return part(std::span<char>(all)); }
    iovec left() const {
      return part(std::string_view(all.data(), end).substr(begin));
    }

    End& from;
    End& to;
    std::array<char, size_t{16} << 10> all{};
    size_t begin = 0, end = 0;
  };

  // Either side may be busy with others: one piece at a time.
  void go_on(Way& way) {
    if (!peer_.stream.is_open()) return;
    const Status status = guarded("net|link", [&] { return carry(way); });
    if (status.ok()) return;
    ErrorCode ignored;
    peer_.stream.close(ignored);
    here_.stream.close(ignored);
  }
  void wait(End& end, Descriptor::wait_type what, Way& way) {
    end.stream.async_wait(
        what, [self = shared_from_this(), &way](const ErrorCode& error) {
          if (!error) self->go_on(way);
        });
  }

  Status carry(Way& way) {
    if (way.begin == way.end) {
      iovec space = way.space();
      TAGFLOW_ASSIGN(
          const auto count,
          read_some(way.from.tls.get(), way.from.stream.native_handle(),
                    {&space, 1}, kWho));
      if (!count) {
        wait(way.from, Descriptor::wait_read, way);
        return {};
      }
      way.begin = 0;
      way.end = *count;
    }
    iovec left = way.left();
    TAGFLOW_ASSIGN(const size_t count,
                   write_some(way.to.tls.get(), way.to.stream.native_handle(),
                              {&left, 1}, kWho));
    way.begin += count;
    if (count == 0) {
      wait(way.to, Descriptor::wait_write, way);
    } else {
      thread_.post([self = shared_from_this(), &way] { self->go_on(way); });
    }
    return {};
  }

  IoThread& thread_;
  End peer_, here_;
  Way in_{peer_, here_}, out_{here_, peer_};
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
