#include "tests/net/protocol/simulation.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/net/protocol/sim_master.h"
#include "tests/net/protocol/sim_worker.h"

namespace tagflow::net::simulated {

namespace {

// The longest a step may take. Its script takes a few seconds.
constexpr Duration kBound = seconds(60);
// After its end a fault may still be noticed: its silence, a connection that is
// being tried.
constexpr Duration kSettled = milliseconds(2500);
// Longer than the longest pause between two attempts to join.
constexpr Duration kAfterwards = seconds(10);
constexpr uint64_t kMostWaits = 200;  // of 100 ms each

class Schedule {
 public:
  Schedule(uint64_t seed, Planted planted)
      : num_workers_(2 + size_t(mixed(seed) % 4)),
        world_(seed, num_workers_ + 1, planted),
        master_(world_, ledger_, num_workers_) {
    Random& random = world_.random();
    const uint64_t windows[] = {512, 2048, 16'384, 1 << 20};
    const uint64_t small[] = {100, 1000, 16'384};
    const Sizes sizes{windows[random.below(4)], small[random.below(3)]};
    for (size_t i = 0; i < num_workers_; ++i) {
      workers_.push_back(std::make_unique<Worker>(
          world_, ledger_, TaskIndex{uint32_t(i)}, num_workers_, sizes));
      if (random.percent(10))
        world_.set_reading(i, microseconds(random.below(1500)));
    }
  }

  Outcome run() {
    Random& random = world_.random();
    master_.start();
    for (size_t i = 0; i < num_workers_; ++i)
      world_.after(milliseconds(random.below(20)),
                   [this, i] { workers_[i]->start(); });
    num_steps_ = random.between(1, 6);
    num_faults_ = random.percent(30) ? 0 : random.between(1, 3);
    num_chains_ = random.percent(30) ? 2 : 1;
    for (uint64_t i = 0; i < num_chains_; ++i)
      world_.after(milliseconds(100), [this] { next_step(); });
    watch();
    while (!is_over_ && world_.step()) {
    }
    if (world_.violation().empty()) check();
    outcome_.violation = world_.violation();
    outcome_.num_events = world_.num_events();
    return outcome_;
  }

 private:
  // What has happened to some tasks, and may be noticed until `end`.
  struct Fault {
    Time begin, end;
    std::set<size_t> hosts;
  };

  // --- The client ---

  void next_step() {
    if (num_steps_ == 0) {
      if (--num_chains_ == 0) finish();
      return;
    }
    if (!master_.run_step([this] {
          // At once, but not within the answer.
          world_.after(Duration(0), [this] { next_step(); });
        })) {
      if (++num_waits_ > kMostWaits) num_steps_ = 0;
      world_.after(milliseconds(100), [this] { next_step(); });
      return;
    }
    --num_steps_;
    // Most things happen soon after the begin of a step.
    while (num_faults_ > 0 && world_.random().percent(50)) {
      --num_faults_;
      const auto least = uint64_t{1} << world_.random().between(0, 20);
      world_.after(microseconds(world_.random().between(least, 2 * least)),
                   [this] { add_fault(); });
    }
  }

  // One more step when all is as if nothing had happened.
  void finish() {
    Time end = world_.now();
    for (const Fault& fault : faults_) end = std::max(end, fault.end);
    num_faults_ = 0;
    world_.after(end - world_.now() + kAfterwards, [this] {
      const bool has_begun = master_.run_step(
          [this] { world_.after(seconds(3), [this] { is_over_ = true; }); });
      if (!has_begun) world_.violation("all workers are lost");
      if (!has_begun) is_over_ = true;
    });
  }

  void watch() {
    for (Time begin : master_.waiting())
      if (world_.now() - begin > kBound)
        world_.violation("a step does not end");
    world_.after(seconds(1), [this] { watch(); });
  }

  // --- Faults ---

  void add_fault() {
    Random& random = world_.random();
    const size_t one = random.below(num_workers_);
    size_t other = random.below(num_workers_);  // the master, if it is `one`
    if (other == one) other = num_workers_;
    // Short ones are not noticed, long ones are.
    Duration time = random.percent(30) ? random.duration({}, milliseconds(900))
                                       : random.duration({}, seconds(5));
    switch (random.below(10)) {
      case 0:
      case 1:
        return crash(one, time, false);
      case 2:
        return crash(one, time, true);
      case 3:
      case 9:
        time = random.percent(60) ? time / 4 : time;
        return stop(random.percent(15) ? num_workers_ : one, time);
      case 4:
        return cut(one, other, time, random.percent(50));
      case 5:
        return cut(other, one, time, random.percent(50));
      case 6:
      case 7:
        note(milliseconds(200), {one, other});
        return world_.break_links(one, other);
      case 8:
        if (!world_.is_up(one) || world_.is_stopped(one)) return;
        return workers_[one]->drain([this, one, time] {
          world_.after(Duration(0), [this, one, time] { leave(one, time); });
        });
    }
  }

  // No step may fail by that: it is a fault of nobody.
  void leave(size_t host, Duration time) {
    if (!world_.is_up(host) || !workers_[host]->has_left()) return;
    note(time, {});
    world_.crash(host, false);
    world_.after(time, [this, host] { workers_[host]->start(); });
  }

  void crash(size_t host, Duration time, bool is_silent) {
    if (!world_.is_up(host)) return;
    // The others learn at once that a process has ended.
    note(is_silent ? time + kSettled : milliseconds(200), {host});
    world_.crash(host, is_silent);
    world_.after(time, [this, host] { workers_[host]->start(); });
  }

  void stop(size_t host, Duration time) {
    note(time + kSettled, {host});
    world_.stop(host);
    world_.after(time, [this, host] { world_.wake(host); });
    // What it commits when it wakes is too late for these steps.
    if (world_.random().percent(30))
      world_.after(milliseconds(world_.random().below(50)),
                   [this] { master_.cancel(); });
  }

  void cut(size_t from, size_t to, Duration time, bool is_cut_back) {
    note(time + kSettled, {from, to});
    for (bool is_cut : {true, false})
      world_.after(is_cut ? Duration(0) : time,
                   [this, from, to, is_cut, is_cut_back] {
                     world_.set_cut(from, to, is_cut);
                     if (is_cut_back) world_.set_cut(to, from, is_cut);
                   });
  }

  // What happens to the master happens to all.
  void note(Duration time, std::set<size_t> hosts) {
    if (hosts == std::set{num_workers_})
      for (size_t i = 0; i < num_workers_; ++i) hosts.insert(i);
    faults_.push_back({world_.now(), world_.now() + time, std::move(hosts)});
  }

  // --- Properties ---

  void check() {
    for (const Answered& answered : master_.answered()) {
      check_answer(answered);
      check_updates(answered);
    }
    std::set<std::tuple<StepId, Incarnation, UpdateKey>> made;
    for (const Ledger::Entry& entry : ledger_.entries)
      if (!made.emplace(entry.step, entry.incarnation, entry.key).second)
        violation(entry.step, "an update is made twice");
    check_end();
  }

  void check_answer(const Answered& answered) {
    const Script& script = *answered.script;
    const Status& status = answered.answer.status;
    const auto demand = [&](bool holds, const char* text) {
      if (!holds) violation(answered.step, text + (": " + status.to_string()));
    };
    outcome_.num_torn += answered.answer.tears;
    switch (status.code()) {
      case Code::kOk:
        ++outcome_.num_succeeded;
        demand(!script.can_fail && !script.is_stuck, "a wrong success");
        return demand(answered.value == script.value, "a wrong value");
      case Code::kInvalidArgument:
        ++outcome_.num_failed;
        return demand(script.can_fail, "a wrong error");
      case Code::kDeadlock:
        ++outcome_.num_deadlocks;
        return demand(script.is_stuck && !script.can_fail, "a wrong deadlock");
      case Code::kDeadlineExceeded:
        ++outcome_.num_stopped;
        return demand(answered.end >= answered.deadline, "an early deadline");
      case Code::kCancelled:
        ++outcome_.num_stopped;
        return demand(answered.is_cancelled, "nobody has cancelled");
      case Code::kUnavailable:
        ++outcome_.num_unavailable;
        return demand(is_explained(answered), "nothing has happened");
      default:
        return demand(false, "a wrong error");
    }
  }

  bool is_explained(const Answered& answered) const {
    const auto text = answered.answer.status.message();
    for (const Fault& fault : faults_) {
      if (fault.begin > answered.end || fault.end < answered.begin) continue;
      for (size_t host : fault.hosts)
        if (text.find(task_name(host)) != text.npos) return true;
    }
    return false;
  }

  void check_updates(const Answered& answered) {
    const bool has_succeeded = answered.answer.status.ok();
    size_t num_updating = 0;
    for (const Part& part : answered.script->parts)
      num_updating += part.updates;
    for (size_t i = 0; i < answered.parts.size(); ++i) {
      const MasterStep::Part& part = answered.parts[i];
      const bool is_member =
          master_.members().incarnation(part.task) == part.incarnation;
      uint64_t num_before = 0, num_after = 0;
      for (const Ledger::Entry& entry : ledger_.entries) {
        if (entry.step != answered.step ||
            entry.incarnation != part.incarnation)
          continue;
        ++(entry.time > answered.end ? num_after : num_before);
      }
      if (num_after > 0 && is_member)
        violation(answered.step, "an update after the answer stays");
      if (has_succeeded && num_before != answered.script->parts[i].num_updates)
        violation(answered.step,
                  "an update of a step that succeeds is missing");
      const bool is_lost = std::find(answered.lost.begin(), answered.lost.end(),
                                     part.task) != answered.lost.end();
      if (has_succeeded && is_lost)
        violation(answered.step, "a step succeeds without a worker");
      if (!has_succeeded && !answered.answer.tears && num_updating > 1 &&
          num_before > 0 && !is_lost)
        violation(answered.step, "a step has torn the state and says not so");
    }
  }

  void check_end() {
    for (size_t i = 0; i < num_workers_; ++i) {
      if (!world_.is_up(i)) continue;
      const Members::State state =
          master_.members().state(TaskIndex{uint32_t(i)});
      if (state != Members::State::kReady)
        world_.violation(task_name(i) + " is not a member");
      if (const std::string left = workers_[i]->leftovers(); !left.empty())
        world_.violation(task_name(i) + ": " + left);
      for (size_t to = 0; to < num_workers_; ++to) {
        if (to == i) continue;
        const std::string wrong = Worker::balance(*workers_[i], *workers_[to]);
        if (!wrong.empty())
          world_.violation(task_name(i) + " to " + task_name(to) + ": " +
                           wrong);
      }
    }
  }

  void violation(StepId step, const std::string& text) {
    world_.violation("step " + std::to_string(uint64_t(step)) + ": " + text);
  }

  const size_t num_workers_;
  Ledger ledger_;
  World world_;
  Master master_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t num_steps_ = 0, num_faults_ = 0, num_chains_ = 0;
  uint64_t num_waits_ = 0;  // of the client, for a member
  std::vector<Fault> faults_;
  bool is_over_ = false;
  Outcome outcome_;
};

}  // namespace

Outcome run_schedule(uint64_t seed, Planted planted) {
  return Schedule(seed, planted).run();
}

}  // namespace tagflow::net::simulated
