// A network of this process, whose lines it can cut and disturb.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::chaos {

// What happens to the packets from one host to another one. A delay is drawn
// for each packet, so packets overtake each other.
struct Line {
  bool is_cut = false;
  int lost_per_mille = 0;
  std::chrono::microseconds longest_delay{0};
};

// Hosts that are connected by a switch. A host is a network namespace with a
// TUN device; a thread of this process forwards the packets, so no rule of the
// kernel's traffic control is needed. All of it ends with the process, however
// that ends. Thread-safe.
class Switch {
 public:
  // `seed`: of what is lost and delayed. Unavailable, naming what has failed,
  // if this process may not make namespaces, or has no TUN devices.
  static Result<std::unique_ptr<Switch>> make(uint32_t num_hosts,
                                              uint64_t seed);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  static std::string address(uint32_t host);
  // The descriptor of its namespace, which the switch owns.
  int descriptor(uint32_t host) const { return hosts_[host].space; }
  void set_line(uint32_t from, uint32_t to, const Line& line);
  void heal_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Host {
    int space = -1;
    int device = -1;
  };

  explicit Switch(uint64_t seed) : random_(seed) {}
  void forward();
  void take_packets(uint32_t from);
  void deliver_due();

  std::vector<Host> hosts_;
  int end_ = -1;  // readable when the thread is to end
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, Line> lines_;  // guarded by mutex_
  // Of the thread alone.
  std::mt19937_64 random_;
  std::multimap<Clock::time_point, std::pair<uint32_t, std::string>> delayed_;
  std::thread thread_;
};

}  // namespace tagflow::chaos
