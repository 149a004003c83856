#include "net/link/traffic.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tagflow::net {

Traffic traffic_of(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    return {};
  return {uint64_t{info.tcpi_rtt} * 1000, info.tcpi_bytes_received,
          info.tcpi_bytes_sent};
}

}  // namespace tagflow::net
