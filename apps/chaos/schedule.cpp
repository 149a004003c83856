#include "apps/chaos/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace tagflow::chaos {
namespace {

std::string name_of(uint32_t host) {
  return host == kMaster ? "the master" : fmt::format("task {}", host);
}

// Numbers that do not depend on the standard library's distributions.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t end) { return int64_t(random_() % uint64_t(end)); }
  int64_t from_to(int64_t first, int64_t last) {
    return first + below(last - first + 1);
  }
  template <typename T>
  T one_of(const std::vector<T>& all) {
    return all[size_t(below(int64_t(all.size())))];
  }

 private:
  std::mt19937_64 random_;
};

// Marks come some microseconds after what they stand for; starts take longer.
int64_t longest_delay(Phase phase) {
  switch (phase) {
    case Phase::kRegister:
      return 40'000;
    case Phase::kStart:
    case Phase::kRestore:
      return 150'000;
    case Phase::kLeave:
      return 20'000;
    case Phase::kLoop:
    case Phase::kDequeue:
    case Phase::kRecv:
      return 4'000;
    default:
      return 2'000;
  }
}

// What begins the phase: the kill of the host itself, of the master, or of
// another worker; or a drain, of the host itself if that is a worker.
Fault leading_to(const Fault& fault) {
  Fault first{.step = fault.step, .host = (fault.host + 1) % kWorkers};
  if (fault.phase == Phase::kStart) first.host = kMaster;
  if (fault.phase == Phase::kRegister) first.host = fault.host;
  if (fault.phase == Phase::kLeave) {
    first.kind = Kind::kDrain;
    if (fault.host != kMaster && !fault.is_drain()) first.host = fault.host;
  }
  return first;
}

uint32_t victim_in(Phase phase, Draw& draw) {
  switch (phase) {
    case Phase::kRegister:
      return uint32_t(draw.below(kWorkers));
    case Phase::kLoop:
      return draw.below(3) == 0 ? kMaster : 1;
    case Phase::kDequeue:
      return 2;
    case Phase::kRecv:
      return 0;
    default:
      return uint32_t(draw.below(kWorkers + 1));
  }
}

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::kRegister:
      return "register";
    case Phase::kStart:
      return "start";
    case Phase::kLoop:
      return "loop";
    case Phase::kDequeue:
      return "blocked dequeue";
    case Phase::kRecv:
      return "open Recv";
    case Phase::kWrite:
      return "write";
    case Phase::kPublish:
      return "publish";
    case Phase::kRestore:
      return "restore";
    case Phase::kLeave:
      return "drain";
    case Phase::kEnd:
      return "end";
  }
  return "";
}

std::string row_of(const Fault& fault) {
  const std::string_view who = fault.host == kMaster ? "master" : "worker";
  switch (fault.kind) {
    case Kind::kKill:
      return fmt::format("{} killed", who);
    case Kind::kStop:
      return fmt::format("{} stopped", who);
    case Kind::kFullDisk:
      return fmt::format("full disk of a {}", who);
    case Kind::kCut:
      return "cut both ways";
    case Kind::kCutOneWay:
      return "cut one way";
    case Kind::kBadLine:
      return "delay, loss, reorder";
    case Kind::kKillAhead:
      return fmt::format("{} killed, next clock ahead", who);
    case Kind::kDrain:
      return "worker drained by SIGTERM";
    case Kind::kAskDrain:
      return "worker drained by a command";
  }
  return "";
}

std::optional<int> most_restarts(const std::vector<Fault>& faults) {
  int most = 0;
  for (const Fault& fault : faults) {
    if (fault.kind == Kind::kFullDisk) continue;
    if (!fault.is_drain()) return std::nullopt;
    ++most;
  }
  return most;
}

std::string Fault::to_string() const {
  std::string what = row_of(*this);
  if (kind == Kind::kCut || kind == Kind::kBadLine)
    what += fmt::format(" ({} and {})", name_of(host), name_of(other));
  else if (kind == Kind::kCutOneWay)
    what += fmt::format(" ({} to {})", name_of(host), name_of(other));
  else if (host != kMaster)
    what += fmt::format(" ({})", name_of(host));
  if (ahead != 0) what += fmt::format(" by {} s", ahead);
  if (lasts.count() != 0) what += fmt::format(", {} ms", lasts.count());
  return fmt::format("{}: {} after step {} + {} us", what, name_of(phase), step,
                     delay.count());
}

std::vector<Fault> draw_faults(uint64_t seed, int64_t steps,
                               const Chances& chances) {
  Draw draw(seed);
  std::vector<Kind> kinds = {Kind::kKill,     Kind::kKill,  Kind::kStop,
                             Kind::kFullDisk, Kind::kDrain, Kind::kAskDrain};
  if (chances.has_network)
    kinds.insert(kinds.end(), {Kind::kCut, Kind::kCutOneWay, Kind::kBadLine});
  if (chances.is_clock_ours) kinds.push_back(Kind::kKillAhead);
  std::vector<Fault> faults;
  for (int64_t left = draw.from_to(1, 3); left > 0; --left) {
    Fault fault;
    fault.kind = draw.one_of(kinds);
    fault.phase = Phase(draw.below(int64_t(Phase::kEnd) + 1));
    fault.step =
        fault.phase == Phase::kEnd ? steps : draw.from_to(1, steps - 1);
    fault.host = victim_in(fault.phase, draw);
    fault.other =
        (fault.host + uint32_t(draw.from_to(1, kWorkers))) % (kWorkers + 1);
    fault.delay =
        std::chrono::microseconds(draw.below(longest_delay(fault.phase)));
    switch (fault.kind) {
      case Kind::kKill:
        break;
      case Kind::kDrain:
      case Kind::kAskDrain:
        if (fault.host == kMaster) fault.host = uint32_t(draw.below(kWorkers));
        break;
      case Kind::kKillAhead:
        fault.ahead = draw.from_to(1, 100'000);
        break;
      case Kind::kFullDisk:
        fault.host = chances.workers_write ? uint32_t(draw.below(kWorkers + 1))
                                           : kMaster;
        fault.lasts = std::chrono::milliseconds(draw.from_to(50, 800));
        break;
      default:
        // Peers are given up after about 1.6 s: some of these are shorter.
        fault.lasts = std::chrono::milliseconds(draw.from_to(100, 2600));
    }
    if (fault.phase <= Phase::kLeave) faults.push_back(leading_to(fault));
    faults.push_back(fault);
  }
  std::ranges::stable_sort(faults, {}, &Fault::step);
  return faults;
}

}  // namespace tagflow::chaos
