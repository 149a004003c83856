#include "net/master/cluster.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "actors/session/joined_executable.h"
#include "actors/session/turns.h"
#include "actors/shared_state.h"
#include "devices/kernel_catalog.h"
#include "graph/fault.h"
#include "graph/file/program_file.h"
#include "graph/partition/transfer_name.h"
#include "net/master/member.h"
#include "net/master/steps.h"
#include "net/transfer/identity.h"

namespace tagflow::net {
namespace {

// Within which a worker notices that its master has left.
constexpr std::chrono::milliseconds kLeaveTime{2'000 * kSlowness};
// To register a program, if links between its workers are lost each time.
constexpr int kMostTries = 5;
constexpr char kSenderIncarnation[] = "send_device_incarnation";

Register::Settings settings_of(const actors::SessionOptions& options) {
  return {.window = uint32_t(options.window),
          .max_call_depth = uint32_t(options.max_call_depth),
          .max_open_calls = uint32_t(options.max_open_calls),
          .compile_edges = options.passes.has(graph::Pass::kEdges),
          .hand_off = uint8_t(options.hand_off),
          .soft_placement = options.soft_placement,
          .seed = options.seed.value_or(options.state->seed())};
}

// What is registered under a number, until it is released by the end of this.
class AtWorkers {
 public:
  // At so many workers at most, which live as long as `cluster`, as does the
  // count of those that are there.
  AtWorkers(std::shared_ptr<void> cluster, std::atomic<uint64_t>& count,
            uint64_t number, size_t most)
      : cluster_(std::move(cluster)), count_(count), number_(number) {
    members_.reserve(most);
    ++count_;
  }
  ~AtWorkers() {
    --count_;
    // Without memory, the worker keeps it until its master leaves.
    for (Member* const member : members_)
      static_cast<void>(
          guarded("net", [&] { return member->release(number_); }));
  }
  AtWorkers(const AtWorkers&) = delete;
  AtWorkers& operator=(const AtWorkers&) = delete;

  uint64_t number() const { return number_; }
  Status send(Member& member, Register& registration) {
    registration.executable = number_;
    TAGFLOW_RETURN_IF_ERROR(member.send(registration));
    members_.push_back(&member);
    return {};
  }

 private:
  const std::shared_ptr<void> cluster_;
  std::atomic<uint64_t>& count_;
  const uint64_t number_;
  std::vector<Member*> members_;
};

// Runs a signature on all workers that have parts of it.
class ClusterRuns final : public actors::RemotePart {
 public:
  // The steps and the program's members live as long as `registered`.
  ClusterRuns(std::shared_ptr<void> registered, Steps& steps,
              ClusterProgram program)
      : registered_(std::move(registered)),
        steps_(steps),
        program_(std::move(program)) {}

  bool is_lost() const override { return !steps_.check_links(program_).ok(); }
  std::string describe_wait(uint64_t step) const override {
    return steps_.describe_wait(program_, step);
  }
  std::string describe_stall(uint64_t step) const override {
    return steps_.describe_stall(program_, step);
  }
  void start(const Order& order, std::function<void(Done)> done) override {
    steps_.start(program_, order, std::move(done));
  }
  void abort(uint64_t step, const Status& reason) override {
    steps_.stop(program_, step, reason);
  }

 private:
  const std::shared_ptr<void> registered_;
  Steps& steps_;
  const ClusterProgram program_;
};

}  // namespace

class Cluster::Impl {
 public:
  explicit Impl(IoThreads io_threads) : threads(std::move(io_threads)) {}
  ~Impl() {
    if (steps != nullptr) steps->leave();
    for (Member* const member : members) member->leave();
    // If both sides close at the same time, the workers may miss the reason.
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    for (Member* const member : members) member->await_end(end);
  }

  // Unavailable if members cannot be reached: `unreached`, and all of them if
  // the options leave out lost ones.
  Status connect(ClusterOptions cluster_options);
  // The part of each worker of a signature: by task.
  struct Part {
    std::optional<Register> registration;  // none: it has no part
    std::vector<uint32_t> feeds;
    std::vector<size_t> peers;  // tasks with which it exchanges tokens
  };
  Result<std::vector<Part>> split(
      std::vector<graph::Partition> partitions,
      const std::vector<std::string>& fetches) const;
  // Connects to the worker of a task; if it has been lost, to the process that
  // follows it.
  Result<Member*> join(size_t task, std::chrono::milliseconds patience,
                       graph::Budget* budget);
  Status join_again(size_t task, graph::Budget* budget);
  // Sends the parts of a program to their workers, and ends the turn. Sets what
  // they answer; returns their warnings. An error if links are lost meanwhile
  // that the program needs.
  Result<std::vector<std::string>> register_parts(
      std::vector<Register>& registrations, actors::Turns::Turn& turn,
      AtWorkers& registered, ClusterProgram& program, graph::Budget* budget);

  IoThreads threads;                     // destroyed last
  std::atomic<uint64_t> executables{0};  // that are registered
  ClusterOptions options;
  std::vector<Task> left_out;
  std::vector<Task> unreached;
  Identity identity;
  std::unique_ptr<Steps> steps;
  // Those that were lost stay: executables name them.
  std::vector<std::unique_ptr<Member>> all_members;
  std::vector<Member*> members;                          // by task: the last
  std::vector<graph::DeviceInfo> infos;                  // of all
  std::vector<size_t> task_of;                           // by device
  std::unordered_map<std::string, size_t> device_named;  // by the full name
  // By device. Graphs are cut for those of `infos`, which do not change when
  // another process takes over a task.
  std::vector<uint64_t> incarnations;
  const devices::RegisteredKernels kernels;
  actors::Turns turns;  // guard the members and the below
  uint64_t requests = 0;
};

Status Cluster::Impl::connect(ClusterOptions cluster_options) {
  options = std::move(cluster_options);
  if (options.members.empty())
    return invalid_argument("[net] the cluster has no worker");
  TAGFLOW_ASSIGN(identity,
                 make_identity(Role::kMaster, {"master", 0}, options.name,
                               options.secret, options.tls));
  std::vector<std::string> names;
  for (const ClusterOptions::Member& each : options.members) {
    names.push_back(each.task.to_string());
    if (std::ranges::count(options.members, each.task,
                           &ClusterOptions::Member::task) > 1)
      return invalid_argument("[net] the cluster has {} twice", names.back());
  }
  steps = std::make_unique<Steps>(
      *threads.bulk, Steps::Options{names, options.tolerates_torn_state,
                                    options.grace, options.on_event});
  Status last;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto member = join(i, options.patience, nullptr);
    if (member.ok()) {
      members.push_back(*member);
      continue;
    }
    last = member.status();
    if (last.code() != Code::kUnavailable) return last;
    unreached.push_back(options.members[i].task);
    if (!options.leaves_out_lost) return last;
  }
  TAGFLOW_RETURN_IF_ERROR(last);
  for (size_t i = 0; i < members.size(); ++i) {
    TAGFLOW_ASSIGN(const auto devices, members[i]->devices());
    for (const graph::DeviceInfo& info : devices) {
      if (info.name.job != members[i]->task().job ||
          info.name.task != int(members[i]->task().index))
        return error(Code::kFailedPrecondition, "[net] {} has a device {}",
                     members[i]->name(), info.name.to_string());
      if (!device_named.emplace(info.name.to_string(), infos.size()).second)
        return error(Code::kFailedPrecondition, "[net] {} has {} twice",
                     members[i]->name(), info.name.to_string());
      infos.push_back(info);
      incarnations.push_back(info.incarnation);
      task_of.push_back(i);
    }
    steps->on_ready(*members[i]);
  }
  return {};
}

Result<Member*> Cluster::Impl::join(size_t task,
                                    std::chrono::milliseconds patience,
                                    graph::Budget* budget) {
  const ClusterOptions::Member& at = options.members[task];
  const std::string name = at.task.to_string();
  if (budget != nullptr) budget->begin(fmt::format("{} was awaited", name));
  auto pair =
      connect_pair(*threads.bulk, at.address, identity, 0, patience, budget);
  if (!pair.ok()) {
    Status status = std::move(pair).status();
    if (budget != nullptr) TAGFLOW_RETURN_IF_ERROR(budget->look());
    // A time-out of the connector: it is not one of the run.
    if (status.code() == Code::kDeadlineExceeded)
      status = error(Code::kUnavailable, "{}", status.message());
    return std::move(status).with_prefix(fmt::format("{}: ", name));
  }
  if (pair->peer.task != at.task)
    return error(Code::kFailedPrecondition, "[net] {} is at {}:{}, not {}",
                 pair->peer.task.to_string(), at.address.host, at.address.port,
                 name);
  const TaskIndex index{uint32_t(task)};
  TAGFLOW_RETURN_IF_ERROR(
      steps->on_hello(index, Incarnation(pair->peer.incarnation)));
  all_members.push_back(std::make_unique<Member>(
      threads, std::move(*pair), at.address, at.task, index, *steps));
  return all_members.back().get();
}

Status Cluster::Impl::join_again(size_t task, graph::Budget* budget) {
  const Status lost = steps->lost(members[task]->index());
  if (lost.ok()) return {};
  const auto joined = join(task, {}, budget);
  if (!joined.ok()) {
    // A process that refuses has not noticed its loss yet: it is lost still.
    const Code code = joined.status().code();
    return error(code == Code::kAborted ? Code::kUnavailable : code,
                 "{}; its last process: {}", joined.status().message(),
                 lost.message());
  }
  Member* const member = *joined;
  members[task] = member;
  const auto said = member->devices();
  if (!said.ok()) {
    // Otherwise the next graph would be sent to devices that nobody has seen.
    member->close(said.status());
    return said.status();
  }
  const std::vector<graph::DeviceInfo>& devices = *said;
  const auto number_of = [&](const graph::DeviceInfo& info) {
    const auto found = device_named.find(info.name.to_string());
    return found == device_named.end() ? infos.size() : found->second;
  };
  const bool are_same =
      ptrdiff_t(devices.size()) == std::ranges::count(task_of, task) &&
      std::ranges::all_of(devices, [&](const graph::DeviceInfo& info) {
        const size_t number = number_of(info);
        return number < infos.size() && task_of[number] == task;
      });
  if (!are_same) {
    Status other =
        error(Code::kFailedPrecondition,
              "[net] {} has come back with other devices", member->name());
    member->close(other);
    return other;
  }
  for (const graph::DeviceInfo& info : devices)
    incarnations[number_of(info)] = info.incarnation;
  steps->on_ready(*member);
  return {};
}

Result<std::vector<Cluster::Impl::Part>> Cluster::Impl::split(
    std::vector<graph::Partition> partitions,
    const std::vector<std::string>& fetches) const {
  std::vector<Part> all(members.size());
  // The transfers of each worker, by names, with the other worker.
  struct End {
    size_t other = 0;
    bool is_sent = false;
  };
  std::vector<std::map<std::string, End>> ends(members.size());
  for (graph::Partition& partition : partitions) {
    const size_t here = task_of[partition.device];
    auto& registration = all[here].registration;
    if (!registration) registration.emplace().fetches = fetches;
    graph::Graph& graph = partition.program.graph;
    for (graph::Node* const node : graph.nodes()) {
      if (!graph::is_transfer(*node)) continue;
      TAGFLOW_ASSIGN(const auto name, graph::transfer_name_of(*node));
      const auto sender = device_named.find(name.sender);
      if (sender == device_named.end()) continue;
      const size_t device = sender->second;
      TAGFLOW_ASSIGN(const auto incarnation,
                     node->attr<int64_t>(kSenderIncarnation));
      if (uint64_t(incarnation) == infos[device].incarnation)
        graph.set_attr(node, kSenderIncarnation, int64_t(incarnations[device]));
    }
    TAGFLOW_ASSIGN(std::string bytes, graph::write_program(partition.program));
    registration->parts.push_back(
        {infos[partition.device].name.to_string(), std::move(bytes)});
    auto& feeds = all[here].feeds;
    for (uint32_t i = 0; i < partition.program.feeds.size(); ++i)
      if (partition.program.feeds[i].node != nullptr &&
          !std::ranges::count(feeds, i))
        feeds.push_back(i);
    for (const graph::Node* node : graph.nodes()) {
      if (!graph::is_transfer(*node)) continue;
      TAGFLOW_ASSIGN(auto name, graph::transfer_name_of(*node));
      const auto other =
          device_named.find(name.is_sent ? name.receiver : name.sender);
      if (other == device_named.end())
        return invalid_argument("[net] {:?} is for no worker of the cluster",
                                name.key);
      const size_t task = task_of[other->second];
      if (task != here)
        ends[here].emplace(std::move(name.key), End{task, name.is_sent});
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::map<size_t, uint32_t> peers;  // by member: the index
    for (const auto& [name, end] : ends[i]) {
      const auto [peer, is_new] =
          peers.emplace(end.other, uint32_t(all[i].peers.size()));
      if (is_new) all[i].peers.push_back(end.other);
      all[i].registration->transfers.push_back(
          {name, peer->second, end.is_sent});
    }
  }
  return all;
}

Result<std::vector<std::string>> Cluster::Impl::register_parts(
    std::vector<Register>& registrations, actors::Turns::Turn& turn,
    AtWorkers& registered, ClusterProgram& program, graph::Budget* budget) {
  for (size_t i = 0; i < registrations.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(
        registered.send(*program.parts[i].member, registrations[i]));
  turn.reset();
  std::vector<std::string> warnings;
  for (ClusterPart& part : program.parts) {
    if (budget != nullptr)
      budget->begin(fmt::format("{} compiled its part", part.member->name()));
    TAGFLOW_ASSIGN(Reply reply,
                   part.member->reply(registered.number(), budget, [&] {
                     return steps->check_links(program);
                   }));
    part.executable = registered.number();
    part.updates_state = reply.updates_state;
    std::ranges::move(reply.warnings, std::back_inserter(warnings));
  }
  TAGFLOW_RETURN_IF_ERROR(steps->check_links(program));
  return warnings;
}

Cluster::Cluster(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Cluster::~Cluster() = default;

Result<std::shared_ptr<Cluster>> Cluster::connect(ClusterOptions options) {
  return guarded("net", [&]() -> Result<std::shared_ptr<Cluster>> {
    std::vector<Task> left_out;
    for (;;) {
      TAGFLOW_ASSIGN(IoThreads threads, IoThreads::start());
      const std::shared_ptr<Impl> impl =
          share_with_threads(new Impl(std::move(threads)));
      Status connected = impl->connect(options);
      if (connected.ok()) {
        impl->left_out = std::move(left_out);
        return std::shared_ptr<Cluster>(new Cluster(impl));
      }
      const std::vector<Task>& lost = impl->unreached;
      if (!options.leaves_out_lost || lost.empty() ||
          lost.size() == options.members.size())
        return connected;
      // The others, which have had a master meanwhile, need a moment.
      options.patience = std::max(options.patience, kLeaveTime);
      for (const Task& task : lost) {
        left_out.push_back(task);
        std::erase_if(options.members, [&](const ClusterOptions::Member& at) {
          return at.task == task;
        });
      }
    }
  });
}

std::shared_ptr<const IoThreads> Cluster::threads() const {
  return {impl_, &impl_->threads};
}

const std::vector<Task>& Cluster::left_out() const { return impl_->left_out; }

std::span<const graph::DeviceInfo> Cluster::devices() const {
  return impl_->infos;
}

const graph::KernelCatalog& Cluster::kernels() const { return impl_->kernels; }

Result<actors::Backend::Made> Cluster::make(
    std::vector<graph::Partition> partitions, std::vector<std::string> fetches,
    const actors::SessionOptions& options, graph::Budget* budget) {
  TAGFLOW_ASSIGN(auto turn, impl_->turns.begin(budget));
  for (const graph::Partition& partition : partitions)
    TAGFLOW_RETURN_IF_ERROR(
        impl_->join_again(impl_->task_of[partition.device], budget));
  const std::vector<Member*> members = impl_->members;
  ClusterProgram program;
  program.fetches.resize(fetches.size());
  for (const graph::Partition& partition : partitions)
    for (size_t i = 0; i < fetches.size(); ++i) {
      const graph::Endpoint& from = partition.program.fetches[i];
      if (from.node == nullptr) continue;
      program.fetches[i] = {
          TaskIndex(impl_->task_of[partition.device]),
          remove_ref(from.node->output_dtypes()[size_t(from.port)]),
          from.node->output_shape(from.port)};
    }
  TAGFLOW_ASSIGN(auto all, impl_->split(std::move(partitions), fetches));
  std::vector<Register> registrations;  // by part
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].registration) continue;
    Register& registration =
        registrations.emplace_back(*std::move(all[i].registration));
    registration.settings = settings_of(options);
    program.parts.push_back({members[i], 0, std::move(all[i].feeds)});
    for (const size_t peer : all[i].peers) {
      registration.peers.push_back(members[peer]->as_peer());
      if (i < peer) program.pairs.emplace_back(TaskIndex(i), TaskIndex(peer));
    }
  }
  Made made;
  // Whoever has the executable keeps it at the workers.
  std::shared_ptr<AtWorkers> registered;
  for (int tries = 1;; ++tries) {
    registered = std::make_shared<AtWorkers>(
        impl_, impl_->executables, ++impl_->requests, program.parts.size());
    program.num_pair_losses = impl_->steps->num_pair_losses();
    auto warnings = impl_->register_parts(registrations, turn, *registered,
                                          program, budget);
    if (warnings.ok()) {
      made.warnings = *std::move(warnings);
      break;
    }
    // The workers make new links when they are asked again.
    if (tries == kMostTries || !impl_->steps->has_lost_pair(program))
      return warnings.status();
    turn.reset();  // it is here still if something could not be sent
    TAGFLOW_ASSIGN(turn, impl_->turns.begin(budget));
  }
  const bool updates_state = program.updates_state();
  made.executable = std::make_shared<actors::JoinedExecutable>(
      std::vector<std::shared_ptr<actors::RemotePart>>{
          std::make_shared<ClusterRuns>(registered, *impl_->steps,
                                        std::move(program))},
      std::move(fetches), updates_state);
  return made;
}

ClusterFigures Cluster::figures() const {
  return {impl_->steps->counts(), impl_->executables, impl_->steps->members()};
}

Status Cluster::check_state() const { return impl_->steps->check_state(); }

Status Cluster::reset(const std::vector<std::string>& containers) {
  TAGFLOW_ASSIGN(auto turn, impl_->turns.begin(nullptr));
  const uint64_t number = ++impl_->requests;
  const uint64_t num_torn = impl_->steps->num_torn();
  const std::vector<Member*> members = impl_->members;
  turn.reset();
  std::vector<Member*> asked;
  Status first;
  for (Member* const member : members) {
    if (!member->lost().ok()) continue;  // it has no state any more
    if (Status status = member->send(Reset{number, containers}); status.ok()) {
      asked.push_back(member);
    } else if (first.ok()) {
      first = std::move(status);
    }
  }
  for (Member* const member : asked)
    if (Status status = member->reply(number, nullptr).status();
        !status.ok() && first.ok())
      first = std::move(status);
  if (first.ok() && std::ranges::count(containers, "") > 0)
    impl_->steps->on_mended(num_torn);
  return first;
}

}  // namespace tagflow::net
