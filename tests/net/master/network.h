// A network of a test's own, whose cables it can cut.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::net {

// Hosts with one cable each to a switch. A host is a network namespace without
// a name: it ends, with its cable, when no thread is in it and the Network is
// gone, however the test ends. Thread-compatible.
class Network {
 public:
  // Unavailable, naming what has failed, if this process may not make
  // namespaces, or if the system lacks what joins them.
  static Result<std::unique_ptr<Network>> make(uint32_t num_hosts);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  std::string address(uint32_t host) const;
  // The descriptor of its namespace, which the Network owns.
  int descriptor(uint32_t host) const { return hosts_[host]; }
  // Calls it on a thread of the host: what it starts and opens is there, too.
  // REQUIRES: f does not throw
  void call(uint32_t host, const std::function<void()>& f) const;

  // From now on, what a host sends to the other one is lost: nobody is told, as
  // with a cut cable.
  void cut(uint32_t from, uint32_t to);
  void heal(uint32_t from, uint32_t to);
  void heal_all();

 private:
  Network() = default;
  Status join(uint32_t num_hosts) const;
  void set_way(uint32_t from, uint32_t to, bool is_cut) const;

  std::vector<int> hosts_;
  std::vector<std::pair<uint32_t, uint32_t>> cuts_;
};

}  // namespace tagflow::net
