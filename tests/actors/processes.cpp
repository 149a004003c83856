#include "tests/actors/processes.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "actors/runtime/peer_rendezvous.h"
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
    // The Send that waits for the acceptance; no iteration: none.
    TransferEnd send;
    int from = 0;
  };
  class Port;

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

  void begin(int process, Step& step, Port& port) {
    const std::lock_guard lock(mutex_);
    parts_[size_t(process)].open.emplace(step.info.step_id, Part{&step, &port});
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
    if (accepted) letter.send = {};
    letters_.push_back(std::move(letter));
    changed_.notify_all();
    return accepted;
  }

 private:
  struct Part {
    Step* step = nullptr;
    Port* port = nullptr;
  };
  struct Process {
    std::map<uint64_t, Part> open;  // by step
    std::set<uint64_t> dead;
  };

  // Delivers one letter after the other, in any order.
  void carry();

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::vector<Process> parts_;
  std::vector<Letter> letters_;
  reference::SeededChoices choices_;
  bool is_over_ = false;
  std::thread carrier_;
};

// The port of one context of a process.
class PeerNetwork::Impl::Port final : public PeerPort {
 public:
  Port(const std::vector<Transfer>& transfers, std::shared_ptr<Impl> network,
       int process)
      : transfers_(transfers),
        network_(std::move(network)),
        process_(process) {}

  void begin(Step& step, BatchStore& store) override {
    step_ = &step;
    store_ = &store;
    number_ = step.info.step_id;
    network_->begin(process_, step, *this);
  }
  void end() override {
    if (step_ == nullptr) return;
    network_->end(process_, number_);
    step_ = nullptr;
    const std::lock_guard lock(mutex_);
    arrived_.clear();
    waiting_.clear();
  }
  void send(uint32_t transfer, const devices::Tag& tag, bool is_dead,
            Tensor value, const TransferEnd& send,
            TransferAnswers& answers) override {
    const std::string& name = transfers_[transfer].name;
    const bool accepted = network_->send({.step = number_,
                                          .to = receiver_of(name),
                                          .transfer = name,
                                          .tag = tag,
                                          .is_dead = is_dead,
                                          .value = std::move(value),
                                          .send = send,
                                          .from = process_});
    if (accepted) answers.accept(send);
  }
  void receive(uint32_t transfer, const devices::Tag& tag,
               const TransferEnd& recv, TransferAnswers& answers) override {
    const std::string key = key_of(transfers_[transfer].name, tag);
    const std::lock_guard lock(mutex_);
    auto node = arrived_.extract(key);
    if (node.empty()) {
      REQUIRE(waiting_.emplace(key, recv).second);
    } else {
      answers.add(recv, node.mapped().is_dead, std::move(node.mapped().value));
    }
  }
  void flush() override {}

  // REQUIRES: the caller has a unit of the step.
  void deliver(Letter& letter) {
    TransferAnswers answers;
    if (letter.transfer.empty()) {
      answers.accept(letter.send);
    } else {
      const std::string key = key_of(letter.transfer, letter.tag);
      const std::lock_guard lock(mutex_);
      auto node = waiting_.extract(key);
      if (node.empty()) {
        REQUIRE(arrived_.emplace(key, std::move(letter)).second);
      } else {
        answers.add(node.mapped(), letter.is_dead, std::move(letter.value));
      }
    }
    answers.post(*step_, *store_);
  }

 private:
  static std::string key_of(const std::string& transfer,
                            const devices::Tag& tag) {
    return fmt::format("{};{};{};{}", transfer, tag.frame_hi, tag.frame_lo,
                       tag.iteration);
  }

  const std::vector<Transfer>& transfers_;
  const std::shared_ptr<Impl> network_;
  const int process_;
  Step* step_ = nullptr;  // in hand
  BatchStore* store_ = nullptr;
  uint64_t number_ = 0;
  std::mutex mutex_;  // guards the below
  std::map<std::string, Letter> arrived_;
  std::map<std::string, TransferEnd> waiting_;
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
    if (letter.send.iteration != nullptr && !letter.transfer.empty())
      letters_.push_back(
          {.step = letter.step, .to = letter.from, .send = letter.send});
    lock.unlock();
    entered.port->deliver(letter);
    entered.step->drop_activity();
    lock.lock();
  }
}

PeerNetwork::PeerNetwork(int processes, uint64_t seed)
    : impl_(std::make_shared<Impl>(processes, seed)) {}

PeerNetwork::~PeerNetwork() = default;

Peers PeerNetwork::peers(int process) {
  return {.spawn_rendezvous = spawn_with_port(
              [impl = impl_, process](const std::vector<Transfer>& transfers) {
                return std::make_unique<Impl::Port>(transfers, impl, process);
              }),
          .describe_wait = [] { return std::string("tokens of peers"); }};
}

// A part of a signature, in an engine of this process.
class Processes::LocalPart final : public RemotePart {
 public:
  LocalPart(std::string task, std::shared_ptr<Executable> executable,
            const Process& process)
      : task_(std::move(task)),
        executable_(std::move(executable)),
        process_(process) {}

  bool is_lost() const override { return false; }
  std::string describe_wait(uint64_t /*step*/) const override {
    return "the part of " + task_;
  }
  std::string describe_stall(uint64_t /*step*/) const override { return {}; }

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
  const std::shared_ptr<Executable> executable_;
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
                                      const SessionOptions& session,
                                      graph::Budget* budget) {
  const auto devices_each = uint32_t(infos_.size() / processes_.size());
  std::vector<std::vector<graph::Partition>> of(processes_.size());
  for (graph::Partition& partition : partitions) {
    const size_t process = partition.device / devices_each;
    partition.device %= devices_each;
    of[process].push_back(std::move(partition));
  }
  Made made;
  SessionOptions options = session;
  options.through_wire = true;  // as what goes to another process does
  std::vector<std::shared_ptr<RemotePart>> parts;
  bool updates_state = false;
  for (size_t p = 0; p < of.size(); ++p) {
    if (of[p].empty()) continue;
    const Process& process = processes_[p];
    TAGFLOW_ASSIGN(Made part, make_local(std::move(of[p]), fetches, options,
                                         process.devices, nullptr,
                                         network_.peers(int(p)), budget));
    updates_state = updates_state || part.executable->updates_state();
    parts.push_back(std::make_shared<LocalPart>(
        fmt::format("/job:worker/replica:0/task:{}", p),
        std::move(part.executable), process));
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
