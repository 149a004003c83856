#include "net/link/door.h"

#include <boost/asio/ip/v6_only.hpp>
#include <utility>
#include <vector>

#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

namespace {

// The addresses at which a process may listen.
std::vector<tcp::endpoint> addresses_of(asio::io_context& context,
                                        const std::string& host, uint16_t port,
                                        ErrorCode& error) {
  if (host.empty())
    return {tcp::endpoint(tcp::v6(), port), tcp::endpoint(tcp::v4(), port)};
  std::vector<tcp::endpoint> found;
  tcp::resolver resolver(context);
  for (const auto& entry : resolver.resolve(
           host, std::to_string(port),
           tcp::resolver::passive | tcp::resolver::numeric_service, error))
    found.push_back(entry.endpoint());
  return found;
}

}  // namespace

Status Door::open(const Protocol::endpoint& address,
                  std::optional<bool> only_v6) {
  ErrorCode error;
  acceptor.open(address.protocol(), error);
  if (!error) close_at_exec(acceptor.native_handle());
  if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
  if (!error && only_v6)
    acceptor.set_option(asio::ip::v6_only(*only_v6), error);
  if (!error) acceptor.bind(address, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  close();
  return tagflow::error(Code::kUnavailable, "{}", error.message());
}

Status Door::open(const tcp::endpoint& address) {
  const Protocol::endpoint at(address);
  if (address.protocol() == tcp::v6())
    return open(at, !address.address().is_unspecified());
  return open(at, std::nullopt);
}

void Door::close() {
  ErrorCode ignored;
  acceptor.close(ignored);
  pause.cancel(ignored);
}

Status open_first(asio::io_context& context, const DoorAddress& address,
                  const std::function<Status(const tcp::endpoint&)>& open) {
  ErrorCode error;
  const auto found = addresses_of(context, address.host, address.port, error);
  Status status = tagflow::error(Code::kUnavailable, "{}",
                                 error ? error.message() : "no address");
  for (const tcp::endpoint& each : found) {
    status = address.only_loopback && !each.address().is_loopback()
                 ? tagflow::error(Code::kPermissionDenied,
                                  "{} is not a loopback address",
                                  each.address().to_string())
                 : open(each);
    if (status.ok()) return {};
  }
  return std::move(status).with_prefix(fmt::format(
      "[net|listener] cannot listen at {} port {}: ",
      address.host.empty() ? "any address" : address.host, address.port));
}

}  // namespace tagflow::net
