#include "tests/net/protocol/training.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/net/protocol/sim_training.h"
#include "tests/net/protocol/sim_undisturbed.h"
#include "tests/net/protocol/sim_worker.h"

namespace tagflow::net::simulated {

namespace {

// From the last fault to the end of the training.
constexpr Duration kBound = seconds(300);
constexpr std::string_view kIndex = ".index";
constexpr const char* kData = ".data-00000-of-00001";

TrainingPlan draw_plan(Random& random) {
  TrainingPlan plan;
  plan.num_workers = size_t(random.between(1, 4));
  plan.num_variables = size_t(random.between(1, 4));
  plan.num_elements = size_t(random.percent(5) ? 9'000 : 8);
  plan.steps = int64_t(random.between(3, 12));
  if (random.percent(70))
    plan.every_steps = int64_t(random.between(1, 4));
  else
    plan.every = milliseconds(random.between(5, 200));
  plan.keep = int(random.between(1, 3));
  plan.sync = random.percent(85);
  plan.restarts = int(random.below(6));
  plan.leaves_out_lost = random.percent(30);
  // Longer than a worker's pause before each of two attempts to join.
  plan.patience = seconds(random.between(11, 20));
  return plan;
}

class TrainingSchedule final : public TrainingWatch {
 public:
  TrainingSchedule(uint64_t seed, Planted planted)
      : draw_(seed ^ 0x7261696e),
        plan_(draw_plan(draw_)),
        world_(seed, plan_.num_workers + 2, planted) {
    const uint64_t windows[] = {2048, 16'384, 1 << 20};
    const Sizes sizes{windows[draw_.below(3)], 1000};
    for (size_t i = 0; i < plan_.num_workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(
          world_, ledger_, TaskIndex{uint32_t(i)}, plan_.num_workers, sizes));
      workers_[i]->set_other_master(plan_.num_workers + 1);
    }
    for (uint64_t n = draw_.percent(10) ? 0 : draw_.between(1, 5); n > 0; --n)
      triggers_.push_back({Moment(draw_.below(uint64_t(Moment::kLast))),
                           draw_.below(draw_.percent(50) ? 3 : 12)});
    disk_.on_change = [this](Disk::Change change, const std::string& path) {
      on_change(change, path);
    };
  }

  TrainingOutcome run() {
    for (size_t i = 0; i < plan_.num_workers; ++i)
      world_.after(milliseconds(draw_.below(20)),
                   [this, i] { workers_[i]->start(); });
    start_master(milliseconds(draw_.below(50)));
    watch();
    while (!is_over_ && world_.step()) {
      for (size_t i = 0; i < masters_.size(); ++i) {
        TrainingMaster* const master = masters_[i].get();
        if (master == nullptr) continue;
        master->poll();
        if (master->result()) on_result(i);
      }
    }
    if (world_.violation().empty()) check_end();
    outcome_.violation = world_.violation();
    outcome_.num_events = world_.num_events();
    // Their fibers end while all else is there.
    masters_.clear();
    return outcome_;
  }

  // --- What the masters tell ---

  void on_moment(Moment moment) override {
    moment_ = moment;
    for (Trigger& trigger : triggers_) {
      if (trigger.is_fired || trigger.moment != moment) continue;
      if (trigger.num_before-- > 0) continue;
      trigger.is_fired = true;
      const uint64_t least = uint64_t{1} << draw_.below(15);
      const Duration delay =
          draw_.percent(30)
              ? Duration(0)
              : Duration(microseconds(draw_.between(least, 2 * least)));
      world_.after(delay, [this] { add_fault(); });
    }
  }

  void on_init(uint64_t) override {
    if (confirmed_ >= 0)
      world_.violation("a training begins anew that has a checkpoint");
  }

  void on_restored(int64_t step, uint64_t seed, const Shards& shards) override {
    ++outcome_.num_restored;
    last_restored_ = step;
    const auto& saved = snapshots_[{step, seed}];
    if (std::find(saved.begin(), saved.end(), shards) == saved.end())
      world_.violation("what is restored for step " + std::to_string(step) +
                       " was never saved");
    if (step < confirmed_)
      world_.violation("the checkpoint of step " + std::to_string(confirmed_) +
                       " is gone: step " + std::to_string(step) +
                       " is restored");
  }

  void on_loaded(uint64_t session, size_t num_parts,
                 const Shards& shards) override {
    size_t num_there = 0;
    Shards found;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (!world_.is_up(i) || workers_[i]->session() != session) continue;
      ++num_there;
      for (const auto& [variable, shard] : workers_[i]->shards())
        if (!found.emplace(variable, shard).second)
          world_.violation("a variable is at two workers after a restore");
    }
    // Otherwise one is lost again.
    if (num_there == num_parts && found != shards)
      world_.violation("a restore has not rolled back all workers");
  }

  void on_step(int64_t step, uint64_t seed, uint64_t value) override {
    ++outcome_.num_steps;
    if (value != undisturbed(seed).value(step))
      world_.violation("step " + std::to_string(step) +
                       " returns what it does not undisturbed");
    seeds_[step] = seed;
  }

  void on_snapshot(int64_t step, uint64_t seed, const Shards& shards) override {
    Shards without_logs = shards;
    for (auto& [variable, shard] : without_logs) shard.log.clear();
    if (without_logs != undisturbed(seed).shards(step))
      world_.violation("the snapshot of step " + std::to_string(step) +
                       " is not of one moment");
    snapshots_[{step, seed}].push_back(shards);
  }

  void on_saved(int64_t step) override {
    ++outcome_.num_saved;
    bool is_whole = false;
    for (const std::string& prefix : prefixes_with_index())
      is_whole |= step_of(prefix) == step && is_kept(prefix);
    if (!is_whole)
      world_.violation("a checkpoint is not whole when it is saved");
    confirmed_ = std::max(confirmed_, step);
  }

  void on_loss() override { ++outcome_.num_losses; }

  void on_failed_save() override { ++outcome_.num_failed_saves; }

 private:
  struct Trigger {
    Moment moment{};
    uint64_t num_before = 0;
    bool is_fired = false;
  };

  // --- Who starts the command, and starts it again ---

  void start_master(Duration delay) {
    world_.after(delay, [this] {
      if (is_done_) return;
      const size_t first = plan_.num_workers + draw_.below(2);
      const size_t other = 2 * plan_.num_workers + 1 - first;
      const size_t host = world_.is_up(first) ? other : first;
      if (world_.is_up(host)) return;
      const Duration ahead = draw_.percent(20)
                                 ? Duration(seconds(draw_.below(20'000)))
                                 : Duration(0);
      masters_.push_back(
          std::make_unique<TrainingMaster>(world_, ledger_, disk_, plan_, *this,
                                           host, masters_.size() + 1, ahead));
      ++outcome_.num_masters;
      masters_.back()->start();
    });
  }

  // When all is over, the command finds that nothing is left to do.
  void look_again() {
    is_over_ = has_looked_;
    if (std::exchange(has_looked_, true)) return;
    triggers_.clear();
    disk_.is_full = false;
    disk_.slowness = {};
    disk_.num_failures = 0;
    if (plan_.sync) disk_.lose_power(draw_);
    last_restored_ = -1;
    is_done_ = false;
    start_master(milliseconds(draw_.below(2000)));
  }

  bool is_any_up() const {
    return world_.is_up(plan_.num_workers) ||
           world_.is_up(plan_.num_workers + 1);
  }

  void on_result(size_t index) {
    const Status status = *masters_[index]->result();
    is_done_ |= status.ok();
    end_master(index, false);
    if (!status.ok() && !is_any_up())
      start_master(milliseconds(draw_.between(100, 2000)));
  }

  void end_master(size_t index, bool is_silent) {
    TrainingMaster& master = *masters_[index];
    world_.crash(master.host(), is_silent);
    master.on_killed();
    ended_.push_back(std::move(masters_[index]));
    if (disk_.locked_by == 0 && std::exchange(is_damage_due_, false)) damage();
    if (is_done_ && !is_any_up()) look_again();
  }

  void watch() {
    if (world_.now() > last_fault_ + kBound)
      world_.violation("the training does not end");
    world_.after(seconds(1), [this] { watch(); });
  }

  // --- Faults ---

  void note(Duration time) {
    last_fault_ = std::max(last_fault_, world_.now() + time);
  }

  void add_fault() {
    const size_t one = draw_.below(plan_.num_workers);
    const size_t other = draw_.below(plan_.num_workers);
    const Duration time = draw_.percent(40)
                              ? draw_.duration({}, milliseconds(900))
                              : draw_.duration({}, seconds(6));
    const size_t master = up_master();
    switch (draw_.below(21)) {
      case 0:
      case 1:
      case 2:
        return crash_worker(one, time, draw_.percent(25));
      case 3:
        return stop(one, time);
      case 4:
        return cut(one, master, time, draw_.percent(50));
      case 5:
        return cut(master, one, time, draw_.percent(50));
      case 6:
        return cut(one, other, time, draw_.percent(50));
      case 7:
        note({});
        return world_.break_links(one, draw_.percent(50) ? other : master);
      case 8:
      case 9:
      case 10:
      case 11:
        return kill_master(time / 2, false);
      case 12:
      case 13:
        return kill_master(time / 2, true);
      case 14:
        stop(master, time);
        return draw_.percent(50) ? give_up() : void();
      case 15:
        for (size_t i = 0; i < plan_.num_workers; ++i)
          cut(i, master, time, true);
        return draw_.percent(50) ? give_up() : void();
      case 16:
        return fill_disk(time / 2);
      case 17:
        return slow_disk(time);
      case 18:
        note(seconds(10));
        disk_.num_failures += draw_.between(1, 3);
        return;
      case 19:
        is_damage_due_ = true;
        return kill_master(time / 2, false);
      case 20:
        return plan_.leaves_out_lost ? take_away(one)
                                     : crash_worker(one, time, false);
    }
  }

  size_t up_master() const {
    return world_.is_up(plan_.num_workers) ? plan_.num_workers
                                           : plan_.num_workers + 1;
  }

  void crash_worker(size_t host, Duration time, bool is_silent) {
    if (!world_.is_up(host)) return;
    note(time);
    world_.crash(host, is_silent);
    world_.after(time, [this, host] {
      if (!world_.is_up(host)) workers_[host]->start();
    });
  }

  // For good, with others left.
  void take_away(size_t host) {
    if (!world_.is_up(host) || has_taken_ || plan_.num_workers == 1) return;
    has_taken_ = true;
    note({});
    world_.crash(host, draw_.percent(50));
  }

  void stop(size_t host, Duration time) {
    if (!world_.is_up(host)) return;
    note(time);
    world_.stop(host);
    world_.after(time, [this, host] { world_.wake(host); });
  }

  void cut(size_t from, size_t to, Duration time, bool is_cut_back) {
    if (from == to) return;
    note(time);
    for (bool is_cut : {true, false})
      world_.after(is_cut ? Duration(0) : time,
                   [this, from, to, is_cut, is_cut_back] {
                     world_.set_cut(from, to, is_cut);
                     if (is_cut_back) world_.set_cut(to, from, is_cut);
                   });
  }

  void kill_master(Duration time, bool loses_power) {
    for (size_t i = 0; i < masters_.size(); ++i) {
      if (masters_[i] == nullptr) continue;
      // What another machine is about to write is not lost with this one.
      const uint64_t writer = disk_.locked_by;
      const bool is_alone = writer == 0 || writer == masters_[i]->process();
      ++outcome_.num_killed[size_t(moment_)];
      end_master(i, loses_power && draw_.percent(50));
      // Files that are not synced are for those who fear no loss of power.
      if (loses_power && plan_.sync && is_alone) {
        ++outcome_.num_power_losses;
        disk_.lose_power(draw_);
      }
      note(time);
      return start_master(time);
    }
  }

  // Somebody believes that the master is dead, and starts another one.
  void give_up() { start_master(milliseconds(draw_.below(2000))); }

  void fill_disk(Duration time) {
    note(time);
    disk_.is_full = true;
    world_.after(time, [this] { disk_.is_full = false; });
  }

  void slow_disk(Duration time) {
    note(time);
    disk_.slowness = milliseconds(draw_.between(5, 300));
    world_.after(time, [this] { disk_.slowness = {}; });
  }

  // A file goes bad while nobody writes. One checkpoint is left.
  void damage() {
    const std::string list = std::string(Disk::kFolder) + "/checkpoint";
    if (draw_.percent(30) && disk_.is_durable(list) &&
        !disk_.find(list)->bytes.empty())
      return disk_.damage(list, draw_, false);
    std::vector<std::string> prefixes;
    for (const std::string& prefix : prefixes_with_index())
      if (is_kept(prefix)) prefixes.push_back(prefix);
    if (prefixes.size() < 2) return;
    ++outcome_.num_damaged;
    const auto place = prefixes.begin() + int64_t(draw_.below(prefixes.size()));
    disk_.damage(*place + (draw_.percent(50) ? std::string(kIndex) : kData),
                 draw_, true);
    prefixes.erase(place);
    int64_t last = -1;
    for (const std::string& prefix : prefixes)
      last = std::max(last, step_of(prefix));
    confirmed_ = std::min(confirmed_, last);
  }

  // --- Properties ---

  Undisturbed& undisturbed(uint64_t seed) {
    return undisturbed_.try_emplace(seed, plan_.num_variables, seed)
        .first->second;
  }

  // Of a prefix.
  static int64_t step_of(const std::string& path) {
    return std::stoll(path.substr(path.rfind('-') + 1));
  }

  std::vector<std::string> prefixes_with_index() const {
    std::vector<std::string> prefixes;
    for (const auto& [path, node] : disk_.names())
      if (path.ends_with(kIndex))
        prefixes.push_back(path.substr(0, path.size() - kIndex.size()));
    return prefixes;
  }

  // Whether a checkpoint is whole, and stays so.
  bool is_kept(const std::string& prefix) const {
    for (const std::string& path :
         {prefix + std::string(kIndex), prefix + kData})
      if (!is_there(path) || disk_.find(path)->is_damaged) return false;
    return true;
  }

  bool is_there(const std::string& path) const {
    return plan_.sync ? disk_.is_durable(path) : disk_.find(path) != nullptr;
  }

  void on_change(Disk::Change change, const std::string& path) {
    const bool is_index = path.ends_with(kIndex);
    const std::string prefix =
        is_index ? path.substr(0, path.size() - kIndex.size()) : "";
    if (change == Disk::Change::kName) {
      on_moment(path.ends_with("/checkpoint") ? Moment::kList
                                              : Moment::kPublish);
      const std::string data = prefix + kData;
      if (is_index && !is_there(data))
        world_.violation("an index is published before its data");
    } else if (change == Disk::Change::kRemove) {
      on_moment(Moment::kCleanup);
      if (is_index && step_of(prefix) <= confirmed_ && is_kept(prefix))
        check_successor(prefix);
    }
  }

  void check_successor(const std::string& prefix) {
    for (const std::string& other : prefixes_with_index()) {
      if (other != prefix && step_of(other) >= step_of(prefix) &&
          is_kept(other))
        return;
    }
    world_.violation("a checkpoint is removed that has no successor");
  }

  void check_end() {
    for (int64_t step = 1; step <= plan_.steps; ++step) {
      if (!seeds_.contains(step))
        world_.violation("step " + std::to_string(step) + " has never run");
      else if (seeds_[step] != seeds_.rbegin()->second)
        world_.violation("the end has another seed than the begin");
    }
    // The look again makes it anew if it has gone bad.
    if (last_restored_ != plan_.steps &&
        (outcome_.num_damaged == 0 || confirmed_ != plan_.steps))
      world_.violation("the checkpoint of the last step is not there");
  }

  Random draw_;
  const TrainingPlan plan_;
  Ledger ledger_;
  World world_;
  Disk disk_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<TrainingMaster>> masters_;  // null: has ended
  std::vector<std::unique_ptr<TrainingMaster>> ended_;
  std::vector<Trigger> triggers_;
  Time last_fault_{};
  Moment moment_ = Moment::kConnect;
  bool has_taken_ = false, is_damage_due_ = false;
  bool is_done_ = false, is_over_ = false;

  bool has_looked_ = false;
  int64_t last_restored_ = -1;
  int64_t confirmed_ = -1;  // the last step whose save has succeeded
  std::map<std::pair<int64_t, uint64_t>, std::vector<Shards>> snapshots_;
  std::map<uint64_t, Undisturbed> undisturbed_;  // by seed
  std::map<int64_t, uint64_t> seeds_;            // of steps, the last
  TrainingOutcome outcome_;
};

}  // namespace

TrainingOutcome run_training_schedule(uint64_t seed, Planted planted) {
  return TrainingSchedule(seed, planted).run();
}

}  // namespace tagflow::net::simulated
