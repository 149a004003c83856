#include "tests/net/master/network.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <thread>

namespace tagflow::net {
namespace {

// Of the cable's end at a host. Each host knows those of all others from the
// start, so that none has to ask, and to a wrong one nobody listens.
std::string hardware_address(uint32_t host, bool is_wrong = false) {
  return fmt::format("02:00:00:00:{}:{:02x}", is_wrong ? "ff" : "00", host);
}

// What a host has to know to reach another one.
std::string way_to(const std::string& address, const std::string& hardware) {
  return fmt::format("ip neighbour replace {} lladdr {} nud permanent dev eth0",
                     address, hardware);
}

Status failed(std::string_view what) {
  return error(Code::kUnavailable, "there is no network to cut: {} fails",
               what);
}

// A namespace that a thread makes is its own.
Result<int> make_namespace() {
  int made = -1;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0)
      made = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  }).join();
  if (made < 0) return failed("unshare(CLONE_NEWNET)");
  return made;
}

}  // namespace

Result<std::unique_ptr<Network>> Network::make(uint32_t num_hosts) {
  std::unique_ptr<Network> network(new Network());
  // The last one is the switch.
  for (uint32_t i = 0; i <= num_hosts; ++i) {
    TAGFLOW_ASSIGN(const int made, make_namespace());
    network->hosts_.push_back(made);
  }
  TAGFLOW_RETURN_IF_ERROR(network->join(num_hosts));
  return network;
}

Network::~Network() {
  for (const int descriptor : hosts_) ::close(descriptor);
}

std::string Network::address(uint32_t host) const {
  return fmt::format("10.0.0.{}", host + 1);
}

void Network::call(uint32_t host, const std::function<void()>& f) const {
  bool is_there = false;
  std::thread([&] {
    is_there = ::setns(hosts_[host], CLONE_NEWNET) == 0;
    if (is_there) f();
  }).join();
  REQUIRE(is_there);
}

Status Network::join(uint32_t num_hosts) const {
  Status status;
  const auto run_at = [&](uint32_t host, const std::string& command) {
    call(host, [&] {
      if (status.ok() && std::system(command.c_str()) != 0)
        status = failed(command);
    });
  };
  const uint32_t hub = num_hosts;
  run_at(hub, "ip link add hub type bridge && ip link set hub up");
  for (uint32_t host = 0; host < num_hosts; ++host) {
    run_at(hub,
           fmt::format("ip link add host{0} type veth "
                       "peer name eth0 address {1} netns /proc/{2}/fd/{3} "
                       "&& ip link set host{0} master hub up",
                       host, hardware_address(host), ::getpid(), hosts_[host]));
    run_at(host, fmt::format("ip link set lo up && ip link set eth0 up && "
                             "ip address add {}/24 dev eth0",
                             address(host)));
    for (uint32_t other = 0; other < num_hosts; ++other)
      if (other != host)
        run_at(host, way_to(address(other), hardware_address(other)));
  }
  return status;
}

void Network::cut(uint32_t from, uint32_t to) {
  set_way(from, to, true);
  cuts_.emplace_back(from, to);
}

void Network::heal(uint32_t from, uint32_t to) {
  set_way(from, to, false);
  std::erase(cuts_, std::pair(from, to));
}

void Network::heal_all() {
  while (!cuts_.empty()) heal(cuts_.back().first, cuts_.back().second);
}

void Network::set_way(uint32_t from, uint32_t to, bool is_cut) const {
  call(from, [&] {
    const std::string command =
        way_to(address(to), hardware_address(to, is_cut));
    CHECK(std::system(command.c_str()) == 0);
  });
}

}  // namespace tagflow::net
