#include "net/grpc/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

namespace tagflow::net {
namespace {

struct FoundAddress {
  std::string text;  // with brackets around one of IPv6
  bool is_loopback = false;
};

FoundAddress describe_address(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.sa_family == AF_INET6) {
    const auto& at = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    ::inet_ntop(AF_INET6, &at, text, sizeof(text));
    return {fmt::format("[{}]", text), bool(IN6_IS_ADDR_LOOPBACK(&at))};
  }
  const auto& at = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  ::inet_ntop(AF_INET, &at, text, sizeof(text));
  constexpr uint32_t kNet = 127, kNetShift = 24;
  return {text, ntohl(at.s_addr) >> kNetShift == kNet};
}

}  // namespace

Result<std::string> listen_address(const std::string& host, uint16_t port,
                                   bool only_loopback) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(
      found, &::freeaddrinfo);
  const FoundAddress* chosen = nullptr;
  FoundAddress address;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    FoundAddress next = describe_address(*at->ai_addr);
    if (only_loopback && !next.is_loopback)
      return error(Code::kPermissionDenied,
                   "[grpc] {} is not a loopback address, and there is no TLS",
                   host);
    // Clients that are told "localhost" try this one at least.
    if (chosen == nullptr || at->ai_family == AF_INET) address = next;
    chosen = &address;
  }
  if (failed != 0 || chosen == nullptr)
    return error(Code::kUnavailable, "[grpc] {}: {}", host,
                 failed != 0 ? ::gai_strerror(failed) : "no address");
  return fmt::format("{}:{}", address.text, port);
}

}  // namespace tagflow::net
