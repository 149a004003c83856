// The local door: how processes of one machine connect.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <string>

namespace tagflow::net {

// Note [The local door]
// Within a machine, a Unix socket takes half the time of TCP for a small
// message, and two thirds of it for a large tensor. So a listener at an address
// of loopback has a second door, whose name says that address. Connectors to
// such an address try the door first, and then TCP. All that follows, from the
// hello on, is the same.
//
// The name is an abstract one of Linux: it belongs to the network namespace, as
// the address does, and ends with the listener. If another process has taken
// it, the listener does not start, as if the port were taken. A listener
// without a door leaves the name to anybody, who could stand between the two
// and read and change what they say; of TCP, only root can. So a connector
// passes by the door of another user.
inline boost::asio::local::stream_protocol::endpoint local_door_of(
    const boost::asio::ip::tcp::endpoint& address) {
  return std::string(1, '\0') + "tagflow " + address.address().to_string() +
         " " + std::to_string(address.port());
}

}  // namespace tagflow::net
