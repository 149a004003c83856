// World: hosts, links and a clock, of which everything is decided by one seed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "net/protocol/ids.h"
#include "tests/net/protocol/sim_faults.h"
#include "tests/net/protocol/sim_message.h"

namespace tagflow::net::simulated {

inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mixed(seed)) {}
  uint64_t next() { return mixed(state_++); }
  // In [0, end).
  uint64_t below(uint64_t end) { return next() % end; }
  // In [first, last].
  uint64_t between(uint64_t first, uint64_t last) {
    return first + below(last - first + 1);
  }
  bool percent(uint64_t chance) { return below(100) < chance; }
  Duration duration(Duration first, Duration last) {
    return Duration(
        int64_t(between(uint64_t(first.count()), uint64_t(last.count()))));
  }

 private:
  uint64_t state_;
};

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

using LinkId = uint64_t;  // 0: none
enum class Channel : uint8_t { kSmall, kBulk };

// What runs at a host: gets messages and the ends of links.
class Process {
 public:
  virtual ~Process() = default;
  virtual void on_message(LinkId link, Message message) = 0;
  virtual void on_closed(LinkId link) = 0;
};

// Virtual time; hosts that crash, stop and wake; links that keep the order of
// each channel, but not between channels or links, and that can be cut in one
// direction. As TCP, a link delivers what was cut off when the cut ends, unless
// an end has closed meanwhile; the ends learn of a close at different times,
// and an abrupt close may overtake messages.
//
// The first violation of a property stops the world.
class World {
 public:
  World(uint64_t seed, size_t num_hosts, Planted planted);

  Time now() const { return now_; }
  Random& random() { return random_; }
  bool is_planted(Planted planted) const { return planted_ == planted; }

  // Calls `f` later, whatever becomes of the hosts.
  void after(Duration delay, std::function<void()> f);
  // Calls `f` at the host later: not if its process has ended by then, and
  // after its wake if it is stopped.
  void local(size_t host, Duration delay, std::function<void()> f);
  // Runs the next event. Returns false at the end, or after a violation.
  bool step();

  // A process starts at the host, which has none.
  void start(size_t host, Process* process);
  // `is_silent`: the host loses its power, so nobody learns of it.
  void crash(size_t host, bool is_silent);
  void stop(size_t host);
  void wake(size_t host);
  bool is_up(size_t host) const { return hosts_[host].process != nullptr; }
  bool is_stopped(size_t host) const { return hosts_[host].is_stopped; }
  // The time that the host takes to read a message.
  void set_reading(size_t host, Duration reading) {
    hosts_[host].reading = reading;
  }

  LinkId connect(size_t from, size_t to);
  void send(LinkId link, size_t from, Message message,
            Channel channel = Channel::kSmall);
  void close(LinkId link, size_t host);
  // Cuts the direction, or mends it.
  void set_cut(size_t from, size_t to, bool is_cut);
  // Ends all links between two hosts, abruptly.
  void break_links(size_t one, size_t other);

  void violation(std::string text) {
    if (violation_.empty()) violation_ = std::move(text);
  }
  const std::string& violation() const { return violation_; }
  uint64_t num_events() const { return num_events_; }

 private:
  struct Event {
    Time time;
    uint64_t order = 0;
    std::function<void()> f;

    bool operator<(const Event& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };
  struct Host {
    Process* process = nullptr;
    uint64_t number = 0;  // of the process
    bool is_stopped = false;
    bool is_dark = false;  // without power: refuses nothing
    Duration reading{};
    Time reads_until;
    // What waits for its wake: its own events first, then what came.
    std::vector<std::function<void()>> own, came;
  };
  struct Link {
    std::array<size_t, 2> hosts;
    std::array<bool, 2> is_open{true, true};
    bool is_broken = false;
    // The last arrival, by receiver and channel.
    std::array<std::array<Time, 2>, 2> last{};
    Duration delay{};
  };
  // A message, or a close if there is none.
  struct Parcel {
    LinkId link = 0;
    size_t to = 0;  // end of the link
    Channel channel{};
    std::shared_ptr<Message> message;
  };

  size_t end_of(const Link& link, size_t host) const {
    return link.hosts[0] == host ? 0 : 1;
  }
  void dispatch(Parcel parcel, bool is_abrupt = false);
  void arrive(Parcel parcel);
  void deliver(Parcel parcel);
  void read(Parcel parcel);
  void dispatch_close(LinkId link, size_t to, bool is_abrupt);

  Random random_;
  const Planted planted_;
  const uint64_t slow_links_;  // percent
  Time now_{};
  uint64_t num_events_ = 0;
  std::priority_queue<Event> events_;
  std::vector<Host> hosts_;
  std::map<LinkId, Link> links_;
  LinkId last_link_ = 0;
  std::vector<std::vector<bool>> cuts_;
  std::map<std::pair<size_t, size_t>, std::deque<Parcel>> stalled_;
  std::string violation_;
};

}  // namespace tagflow::net::simulated
