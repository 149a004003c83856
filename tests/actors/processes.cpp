#include "tests/actors/processes.h"

#include <caf/actor_system.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "actors/plan/compile.h"
#include "actors/runtime/rendezvous.h"
#include "actors/runtime/runner.h"
#include "actors/session/joined_executable.h"
#include "devices/device_registry.h"
#include "tests/reference/random_graph.h"

namespace tagflow::actors {
namespace {

// The task of the receiving device of a transfer.
int receiver_of(const std::string& name) {
  size_t begin = 0;
  for (int i = 0; i < 2; ++i) begin = name.find(';', begin) + 1;
  const size_t end = name.find(';', begin);
  return graph::DeviceName::parse(name.substr(begin, end - begin))
      ->task.value();
}

}  // namespace

class PeerNetwork::Impl {
 public:
  // A token, or the acceptance of one.
  struct Letter {
    uint64_t step = 0;
    int to = 0;
    std::string transfer;  // empty: an acceptance
    devices::Tag tag;
    bool is_dead = false;
    Tensor value;
    // The iteration and the Send that wait for the acceptance; null: none.
    EngineActor* sender = nullptr;
    uint32_t send = 0;
    int from = 0;
  };
  class Meeting;

  Impl(int processes, uint64_t seed)
      : parts_(size_t(processes)),
        choices_(seed),
        carrier_([this] { carry(); }) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    carrier_.join();
  }

  void begin(int process, Step& step, Meeting& meeting) {
    const std::lock_guard lock(mutex_);
    parts_[size_t(process)].open.emplace(step.info.step_id,
                                         Part{&step, &meeting});
    changed_.notify_all();
  }
  void end(int process, uint64_t step) {
    const std::lock_guard lock(mutex_);
    parts_[size_t(process)].open.erase(step);
    parts_[size_t(process)].dead.insert(step);
    changed_.notify_all();
  }
  // Whether the Send is accepted at once.
  bool send(Letter&& letter) {
    const std::lock_guard lock(mutex_);
    const bool accepted = choices_.below(2) == 0;
    if (accepted) letter.sender = nullptr;
    letters_.push_back(std::move(letter));
    changed_.notify_all();
    return accepted;
  }

 private:
  struct Part {
    Step* step = nullptr;
    Meeting* meeting = nullptr;
  };
  struct Process {
    std::map<uint64_t, Part> open;  // by step
    std::set<uint64_t> dead;
  };

  // Delivers one letter after the other, in any order.
  void carry();
  void deliver(Letter& letter, const Part& part);

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::vector<Process> parts_;
  std::vector<Letter> letters_;
  reference::SeededChoices choices_;
  bool is_over_ = false;
  std::thread carrier_;
};

// The rendezvous of one context of a process.
class PeerNetwork::Impl::Meeting : public LocalRendezvous {
 public:
  Meeting(caf::actor_config& config, HandOff policy,
          const std::vector<Transfer>& transfers, BatchStore* store,
          std::shared_ptr<Impl> network, int process)
      : LocalRendezvous(config, policy, transfers, store),
        store_(*store),
        network_(std::move(network)),
        process_(process) {
    for (uint32_t i = 0; i < transfers.size(); ++i)
      numbers_.emplace(transfers[i].name, i);
  }

  uint32_t number_of(const std::string& name) const {
    return numbers_.at(name);
  }
  // Thread-safe.
  Batch* make_batch() { return store_.make(); }
  void begin(Step& step) override {
    step_ = step.info.step_id;
    network_->begin(process_, step, *this);
  }
  void reset() override {
    network_->end(process_, step_);
    LocalRendezvous::reset();
  }

 protected:
  void on_batch(Batch* batch, Runner& runner) override {
    // The tokens that leave; the others are met here.
    size_t kept = 0;
    Step& step = *batch->step;
    for (Token& token : batch->tokens) {
      const Transfer& over = transfer(token.slot);
      if (over.ends != Transfer::Ends::kSend || step.cancelled()) {
        Token& place = batch->tokens.begin()[kept++];
        if (&place != &token) place = std::move(token);
        continue;
      }
      const bool accepted = network_->send({.step = step.info.step_id,
                                            .to = receiver_of(over.name),
                                            .transfer = over.name,
                                            .tag = batch->tag,
                                            .is_dead = token.is_dead,
                                            .value = std::move(token.value),
                                            .sender = batch->sender,
                                            .send = token.waiter,
                                            .from = process_});
      if (accepted) answer({batch->sender, token.waiter}, false, {}, step);
    }
    batch->tokens.truncate(kept);
    LocalRendezvous::on_batch(batch, runner);
  }

 private:
  BatchStore& store_;
  const std::shared_ptr<Impl> network_;
  const int process_;
  std::unordered_map<std::string, uint32_t> numbers_;  // of transfers
  uint64_t step_ = 0;                                  // in hand
};

void PeerNetwork::Impl::carry() {
  std::unique_lock lock(mutex_);
  std::vector<size_t> ready;  // of letters_; the others are early
  for (;;) {
    changed_.wait(lock, [&] {
      ready.clear();
      for (size_t i = 0; i < letters_.size(); ++i) {
        const Process& to = parts_[size_t(letters_[i].to)];
        if (to.open.contains(letters_[i].step) ||
            to.dead.contains(letters_[i].step))
          ready.push_back(i);
      }
      return is_over_ || !ready.empty();
    });
    if (is_over_) return;
    std::swap(letters_[ready[choices_.below(uint32_t(ready.size()))]],
              letters_.back());
    Letter letter = std::move(letters_.back());
    letters_.pop_back();
    Process& to = parts_[size_t(letter.to)];
    const auto part = to.open.find(letter.step);
    if (part == to.open.end() || !part->second.step->try_enter()) continue;
    const Part entered = part->second;
    if (letter.sender != nullptr && !letter.transfer.empty())
      letters_.push_back({.step = letter.step,
                          .to = letter.from,
                          .sender = letter.sender,
                          .send = letter.send});
    lock.unlock();
    deliver(letter, entered);
    lock.lock();
  }
}

// REQUIRES: the caller has a unit of the part's step.
void PeerNetwork::Impl::deliver(Letter& letter, const Part& part) {
  Runner runner(nullptr, HandOff::kDirect, std::chrono::hours(1));
  Batch* const batch = part.meeting->make_batch();
  batch->step = part.step;
  if (letter.transfer.empty()) {
    batch->kind = BatchKind::kReceived;
    batch->receiver = letter.sender;
    batch->tokens.add(letter.send);
    runner.post(letter.sender, batch);
  } else {
    batch->kind = BatchKind::kTransfers;
    batch->tag = letter.tag;
    Token& token = batch->tokens.add(part.meeting->number_of(letter.transfer),
                                     letter.is_dead);
    token.waiter = Token::kNobody;
    token.value.take(letter.value);
    runner.post(part.meeting, batch);
  }
  runner.flush();
  part.step->drop_activity();
}

PeerNetwork::PeerNetwork(int processes, uint64_t seed)
    : impl_(std::make_shared<Impl>(processes, seed)) {}

PeerNetwork::~PeerNetwork() = default;

Peers PeerNetwork::peers(int process) {
  return {.spawn_rendezvous =
              [impl = impl_, process](caf::actor_system& system, HandOff policy,
                                      const std::vector<Transfer>& transfers,
                                      BatchStore* store) {
                return spawn_actor<Impl::Meeting, caf::lazy_init>(
                    system, policy, std::cref(transfers), store, impl, process);
              },
          .describe_wait = [] { return std::string("tokens of peers"); }};
}

// A part of a signature, in an engine of this process.
class Processes::LocalPart final : public RemotePart {
 public:
  LocalPart(std::string task, std::shared_ptr<LocalExecutable> executable,
            const Process& process)
      : task_(std::move(task)),
        executable_(std::move(executable)),
        process_(process) {}

  const std::string& task() const override { return task_; }

  void start(const Order& order, std::function<void(Done)> done) override {
    const auto step = std::make_shared<Step>(order.step.info.step_id,
                                             executable_->num_fetches());
    step->info.seed = order.step.info.seed;
    step->info.forward_buffers = order.step.info.forward_buffers;
    step->info.state = &process_.state->resources();
    step->info.random_runs =
        &step->random.emplace(process_.state->run_counts());
    {
      const std::lock_guard lock(mutex_);
      open_.emplace(step->info.step_id, step);
    }
    step->on_over = [this, done](Step& over, Step::Answer answer,
                                 const RunStats& stats) {
      {
        const std::lock_guard lock(mutex_);
        open_.erase(over.info.step_id);
      }
      over.answer(std::vector<Tensor>());  // closes the gate of changes
      done({std::move(answer), stats});
    };
    const Status started =
        executable_->start(step, order.feeds, false, order.count);
    if (!started.ok()) done({started, {}});
  }

  void abort(uint64_t id, const Status& reason) override {
    std::shared_ptr<Step> step;
    {
      const std::lock_guard lock(mutex_);
      const auto found = open_.find(id);
      if (found != open_.end()) step = found->second.lock();
    }
    if (step != nullptr) step->fail(reason);
  }

 private:
  const std::string task_;
  const std::shared_ptr<LocalExecutable> executable_;
  const Process process_;
  std::mutex mutex_;  // guards the below
  std::map<uint64_t, std::weak_ptr<Step>> open_;
};

Processes::Processes(int count, const std::string& devices, int workers,
                     uint64_t seed)
    : network_(count, seed) {
  const auto specs = devices::parse_device_specs(devices).value();
  for (int task = 0; task < count; ++task) {
    auto engine = Engine::create({.workers = workers}).value();
    auto made =
        devices::make_devices(specs, devices::DeviceRegistry::global(),
                              {.job = "worker", .replica = 0, .task = task})
            .value();
    auto set = DeviceSet::make(std::move(engine), std::move(made));
    const auto infos = set->infos();
    infos_.insert(infos_.end(), infos.begin(), infos.end());
    processes_.push_back({set, std::make_shared<SharedState>(set)});
  }
}

Result<Backend::Made> Processes::make(std::vector<graph::Partition> partitions,
                                      std::vector<std::string> fetches,
                                      graph::Budget* budget) {
  const auto devices_each = uint32_t(infos_.size() / processes_.size());
  std::vector<std::vector<graph::Partition>> of(processes_.size());
  for (graph::Partition& partition : partitions) {
    const size_t process = partition.device / devices_each;
    partition.device %= devices_each;
    of[process].push_back(std::move(partition));
  }
  Made made;
  SessionOptions options;
  options.through_wire = true;  // as what goes to another process does
  std::vector<std::shared_ptr<RemotePart>> parts;
  bool updates_state = false;
  for (size_t p = 0; p < of.size(); ++p) {
    if (of[p].empty()) continue;
    const Process& process = processes_[p];
    TAGFLOW_ASSIGN(auto plans, compile(std::move(of[p]), options,
                                       process.devices->devices(), budget));
    auto executable = std::make_shared<LocalExecutable>(
        process.devices,
        CallLimits{options.max_call_depth, options.max_open_calls},
        std::move(plans), fetches, nullptr, network_.peers(int(p)));
    updates_state = updates_state || executable->updates_state();
    parts.push_back(std::make_shared<LocalPart>(
        fmt::format("/job:worker/replica:0/task:{}", p), std::move(executable),
        process));
  }
  made.executable = std::make_shared<JoinedExecutable>(
      std::move(parts), std::move(fetches), updates_state);
  return made;
}

Status Processes::reset(const std::vector<std::string>& containers) {
  for (const Process& process : processes_)
    process.state->resources().reset(containers);
  return {};
}

}  // namespace tagflow::actors
