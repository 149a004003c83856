#include "apps/chaos/switch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace tagflow::chaos {
namespace {

constexpr size_t kMostBytes = 65536;     // of a packet
constexpr size_t kMostDelayed = 100000;  // packets; more are lost

Status failed(std::string_view what) {
  return error(Code::kUnavailable, "[chaos] there is no network to cut: {}: {}",
               what, std::strerror(errno));
}

// Sets one property of an interface of this thread's network namespace.
template <typename Set>
Status configure(const char* name, unsigned long request, Set set) {
  const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0) return failed("socket()");
  ifreq interface {};
  std::strncpy(interface.ifr_name, name, IFNAMSIZ - 1);
  set(interface);
  const bool is_set = ::ioctl(any, request, &interface) == 0;
  Status status = is_set ? Status() : failed("an interface's settings");
  ::close(any);
  return status;
}

void set_address(sockaddr& address, const std::string& text) {
  auto& inet = reinterpret_cast<sockaddr_in&>(address);
  inet.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &inet.sin_addr);
}

// Makes a network namespace for the calling thread, with a device in it.
Status make_host(const std::string& address, int& space, int& device) {
  if (::unshare(CLONE_NEWNET) != 0) return failed("unshare(CLONE_NEWNET)");
  space = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (space < 0) return failed("/proc/thread-self/ns/net");
  device = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (device < 0) return failed("/dev/net/tun");
  ifreq interface {};
  interface.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(interface.ifr_name, "line", IFNAMSIZ - 1);
  if (::ioctl(device, TUNSETIFF, &interface) != 0) return failed("TUNSETIFF");
  const auto up = [](ifreq& r) { r.ifr_flags = IFF_UP | IFF_RUNNING; };
  TAGFLOW_RETURN_IF_ERROR(configure("lo", SIOCSIFFLAGS, up));
  TAGFLOW_RETURN_IF_ERROR(configure("line", SIOCSIFADDR, [&](ifreq& r) {
    set_address(r.ifr_addr, address);
  }));
  TAGFLOW_RETURN_IF_ERROR(configure("line", SIOCSIFNETMASK, [](ifreq& r) {
    set_address(r.ifr_netmask, "255.255.255.0");
  }));
  return configure("line", SIOCSIFFLAGS, up);
}

// The host that an IPv4 packet is for; none for all others.
std::optional<uint32_t> receiver_of(std::string_view packet) {
  constexpr size_t kHeader = 20;
  if (packet.size() < kHeader || (uint8_t(packet[0]) >> 4) != 4) return {};
  const uint8_t last = uint8_t(packet[19]);
  if (last == 0) return {};
  return last - 1u;
}

}  // namespace

Result<std::unique_ptr<Switch>> Switch::make(uint32_t num_hosts,
                                             uint64_t seed) {
  std::unique_ptr<Switch> made(new Switch(seed));
  made->end_ = ::eventfd(0, EFD_CLOEXEC);
  if (made->end_ < 0) return failed("eventfd()");
  for (uint32_t host = 0; host < num_hosts; ++host) {
    Host& added = made->hosts_.emplace_back();
    Status status;
    std::thread([&] {
      status = make_host(address(host), added.space, added.device);
    }).join();
    TAGFLOW_RETURN_IF_ERROR(std::move(status));
  }
  made->thread_ = std::thread([raw = made.get()] { raw->forward(); });
  return made;
}

Switch::~Switch() {
  if (thread_.joinable()) {
    ::eventfd_write(end_, 1);
    thread_.join();
  }
  for (const Host& host : hosts_)
    for (const int descriptor : {host.space, host.device})
      if (descriptor >= 0) ::close(descriptor);
  if (end_ >= 0) ::close(end_);
}

std::string Switch::address(uint32_t host) {
  return fmt::format("10.0.0.{}", host + 1);
}

void Switch::set_line(uint32_t from, uint32_t to, const Line& line) {
  const std::lock_guard lock(mutex_);
  lines_[{from, to}] = line;
}

void Switch::heal_all() {
  const std::lock_guard lock(mutex_);
  lines_.clear();
}

void Switch::forward() {
  std::vector<pollfd> ends;
  for (const Host& host : hosts_) ends.push_back({host.device, POLLIN, 0});
  ends.push_back({end_, POLLIN, 0});
  for (;;) {
    timespec wait{3600, 0};
    if (!delayed_.empty()) {
      const auto left = std::max<Clock::duration>(
          delayed_.begin()->first - Clock::now(), Clock::duration(0));
      wait.tv_sec = left / std::chrono::seconds(1);
      wait.tv_nsec =
          std::chrono::nanoseconds(left % std::chrono::seconds(1)).count();
    }
    ::ppoll(ends.data(), ends.size(), &wait, nullptr);
    if (ends.back().revents != 0) return;
    for (uint32_t host = 0; host < hosts_.size(); ++host)
      if (ends[host].revents != 0) take_packets(host);
    deliver_due();
  }
}

void Switch::take_packets(uint32_t from) {
  std::array<char, kMostBytes> bytes;
  for (;;) {
    const ssize_t size = ::read(hosts_[from].device, bytes.data(), kMostBytes);
    if (size <= 0) return;
    const std::string_view packet(bytes.data(), size_t(size));
    const auto to = receiver_of(packet);
    if (!to || *to >= hosts_.size()) continue;
    Line line;
    {
      const std::lock_guard lock(mutex_);
      const auto found = lines_.find({from, *to});
      if (found != lines_.end()) line = found->second;
    }
    if (line.is_cut || int(random_() % 1000) < line.lost_per_mille) continue;
    if (line.longest_delay.count() == 0) {
      // What the receiver has no room for is lost, as on any line.
      (void)!::write(hosts_[*to].device, packet.data(), packet.size());
    } else if (delayed_.size() < kMostDelayed) {
      const std::chrono::microseconds delay(
          random_() % uint64_t(line.longest_delay.count()));
      delayed_.emplace(Clock::now() + delay,
                       std::pair(*to, std::string(packet)));
    }
  }
}

void Switch::deliver_due() {
  const auto now = Clock::now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const auto& [to, packet] = delayed_.begin()->second;
    (void)!::write(hosts_[to].device, packet.data(), packet.size());
    delayed_.erase(delayed_.begin());
  }
}

}  // namespace tagflow::chaos
