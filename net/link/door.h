// Door: a place at which a process accepts connections.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "graph/status.h"

namespace tagflow::net {

// Life: made, open, closed; it may be opened again. Thread-compatible.
struct Door {
  using Protocol = boost::asio::generic::stream_protocol;
  using Acceptor = boost::asio::basic_socket_acceptor<Protocol>;
  // After an accept that failed, as for want of descriptors.
  static constexpr std::chrono::milliseconds kPause{20};

  explicit Door(boost::asio::io_context& context)
      : acceptor(context), pause(context) {}

  // Listens at the address; `only_v6`, if given, is the socket's option.
  // Unavailable if it cannot.
  Status open(const Protocol::endpoint& address,
              std::optional<bool> only_v6 = {});
  // The same by TCP: of "all addresses", those of IPv4 are a part.
  Status open(const boost::asio::ip::tcp::endpoint& address);
  void close();

  Acceptor acceptor;
  boost::asio::steady_timer pause;
};

// Where a process listens, and whether it may.
struct DoorAddress {
  // An address or a name of this machine, of IPv4 or IPv6. Empty: all
  // addresses.
  std::string host = "localhost";
  uint16_t port = 0;  // 0: one that is free
  // Other addresses than those of loopback are refused.
  bool only_loopback = true;
};

// Calls `open` with the addresses of the host in turn, until it opens one. The
// last error says where: Unavailable, or PermissionDenied if the address is
// refused. Thread-safe.
Status open_first(
    boost::asio::io_context& context, const DoorAddress& address,
    const std::function<Status(const boost::asio::ip::tcp::endpoint&)>& open);

}  // namespace tagflow::net
