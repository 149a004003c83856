#include "net/master/cluster.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "actors/runtime/reaper.h"
#include "actors/runtime/step.h"
#include "actors/session/joined_executable.h"
#include "devices/kernel_catalog.h"
#include "graph/fault.h"
#include "graph/file/program_file.h"
#include "graph/partition/transfer_name.h"
#include "net/master/member.h"
#include "net/transfer/identity.h"
#include "net/transfer/reports.h"

namespace tagflow::net {
namespace {

// What one worker runs of a signature. Its Run is sent before start(), together
// with those of the other parts, so that the numbers of steps grow on each
// link.
class Part final : public actors::RemotePart {
 public:
  Part(std::shared_ptr<Member> member, uint64_t executable,
       std::vector<uint32_t> feeds, size_t num_fetches)
      : member_(std::move(member)),
        executable_(executable),
        feeds_(std::move(feeds)),
        num_fetches_(num_fetches) {}

  const std::string& task() const override { return member_->name(); }

  // `number` is that of the step on the wire.
  void send_run(const actors::Step& step, uint64_t number,
                std::span<const Tensor> feeds, bool count) {
    const auto begun = std::make_shared<Begun>();
    begun->number = number;
    {
      const std::lock_guard lock(mutex_);
      begun_.emplace(step.info.step_id, begun);
    }
    Run run{.executable = executable_, .step = number};
    run.seed = step.info.seed;
    run.has_stats = count;
    std::vector<std::pair<uint32_t, Tensor>> values;
    for (const uint32_t feed : feeds_) values.emplace_back(feed, feeds[feed]);
    member_->run(std::move(run), values,
                 [begun, fetches = num_fetches_](Member::Over over) {
                   begun->end(done_of(std::move(over), fetches));
                 });
  }
  // The step was not started: nobody will ask for what was sent.
  void give_up(uint64_t id, const Status& reason) {
    abort(id, reason);
    const std::lock_guard lock(mutex_);
    begun_.erase(id);
  }

  void start(const Order& order, std::function<void(Done)> done) override {
    const uint64_t id = order.step.info.step_id;
    std::shared_ptr<Begun> begun;
    {
      const std::lock_guard lock(mutex_);
      begun = begun_.at(id);
    }
    begun->attach([this, id, done = std::move(done)](Done over) {
      {
        const std::lock_guard lock(mutex_);
        begun_.erase(id);
      }
      done(std::move(over));  // which may free this
    });
  }

  void abort(uint64_t id, const Status& reason) override {
    std::shared_ptr<Begun> begun;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = begun_.find(id); found != begun_.end())
        begun = found->second;
    }
    if (begun != nullptr) member_->abort(begun->number, reason);
  }

 private:
  // A step whose Run was sent. Its end may come before start() asks for it.
  struct Begun {
    uint64_t number = 0;
    std::mutex mutex;  // guards the below
    std::optional<Done> over;
    std::function<void(Done)> done;

    void end(Done what) {
      std::unique_lock lock(mutex);
      if (done == nullptr) {
        over.emplace(std::move(what));
        return;
      }
      const auto tell = std::move(done);
      lock.unlock();
      tell(std::move(what));
    }
    void attach(std::function<void(Done)> tell) {
      std::unique_lock lock(mutex);
      if (!over) {
        done = std::move(tell);
        return;
      }
      Done what = std::move(*over);
      lock.unlock();
      tell(std::move(what));
    }
  };

  static Done done_of(Member::Over over, size_t num_fetches) {
    const actors::RunStats stats = stats_of(over.stats);
    if (!over.status.ok()) return {std::move(over.status), stats};
    std::vector<Tensor> fetches(num_fetches);
    for (auto& [index, tensor] : over.fetches) {
      if (index >= fetches.size())
        return {error(Code::kDataLoss, "[net] a worker gives fetch {} of {}",
                      index, num_fetches),
                stats};
      fetches[index] = std::move(tensor);
    }
    return {std::move(fetches), stats};
  }

  const std::shared_ptr<Member> member_;
  const uint64_t executable_;
  const std::vector<uint32_t> feeds_;  // that the worker takes
  const size_t num_fetches_;
  std::mutex mutex_;                                  // guards the below
  std::map<uint64_t, std::shared_ptr<Begun>> begun_;  // by the session's number
};

// Orders the Runs of all steps of a cluster.
struct StepNumbers {
  std::mutex mutex;  // guards the below; held while Runs are sent
  uint64_t last = 0;
};

class ClusterExecutable final : public actors::Executable {
 public:
  ClusterExecutable(std::vector<std::shared_ptr<Part>> parts,
                    std::vector<std::string> fetches, bool updates_state,
                    std::shared_ptr<StepNumbers> numbers)
      : parts_(std::move(parts)),
        numbers_(std::move(numbers)),
        joined_(std::make_shared<actors::JoinedExecutable>(
            std::vector<std::shared_ptr<actors::RemotePart>>(parts_.begin(),
                                                             parts_.end()),
            std::move(fetches), updates_state)) {}

  size_t num_fetches() const override { return joined_->num_fetches(); }
  bool updates_state() const override { return joined_->updates_state(); }
  bool can_be_frozen() const override { return false; }
  Status start(const std::shared_ptr<actors::Step>& step,
               std::span<const Tensor> feeds, bool lend, bool count) override {
    Status status = guarded("net", [&] {
      const std::lock_guard lock(numbers_->mutex);
      const uint64_t number = ++numbers_->last;
      for (const auto& part : parts_)
        part->send_run(*step, number, feeds, count);
    });
    if (status.ok()) status = joined_->start(step, feeds, lend, count);
    if (!status.ok())
      for (const auto& part : parts_) part->give_up(step->info.step_id, status);
    return status;
  }

 private:
  const std::vector<std::shared_ptr<Part>> parts_;
  const std::shared_ptr<StepNumbers> numbers_;
  const std::shared_ptr<actors::JoinedExecutable> joined_;
};

}  // namespace

class Cluster::Impl {
 public:
  explicit Impl(IoThreads io_threads) : threads(std::move(io_threads)) {}
  ~Impl() {
    for (const auto& member : members) member->leave();
  }

  Status connect(const ClusterOptions& options);
  // What each worker gets of a signature; null: nothing.
  Result<std::vector<std::optional<Register>>> split(
      std::vector<graph::Partition> partitions,
      const std::vector<std::string>& fetches,
      std::vector<std::vector<uint32_t>>& feeds) const;
  void release(uint64_t executable, const std::vector<size_t>& of) noexcept;

  IoThreads threads;  // destroyed last
  std::vector<std::shared_ptr<Member>> members;
  std::vector<graph::DeviceInfo> infos;                  // of all
  std::vector<size_t> member_of;                         // by device
  std::unordered_map<std::string, size_t> member_named;  // by device's name
  const devices::RegisteredKernels kernels;
  const std::shared_ptr<StepNumbers> steps = std::make_shared<StepNumbers>();
  std::mutex mutex;  // guards the below: one request at a time
  uint64_t requests = 0;
};

Status Cluster::Impl::connect(const ClusterOptions& options) {
  if (options.secret.empty())
    return invalid_argument("[net] the secret of a cluster must not be empty");
  if (options.members.empty())
    return invalid_argument("[net] the cluster has no worker");
  TAGFLOW_ASSIGN(const Identity identity,
                 make_identity(Role::kMaster, {"master", 0}, options.name,
                               options.secret));
  for (const ClusterOptions::Member& each : options.members) {
    const std::string name = each.task.to_string();
    if (std::ranges::count(options.members, each.task,
                           &ClusterOptions::Member::task) > 1)
      return invalid_argument("[net] the cluster has {} twice", name);
    auto pair = connect_pair(*threads.bulk, each.address, identity, 0,
                             options.patience);
    if (!pair.ok())
      return std::move(pair).status().with_prefix(fmt::format("{}: ", name));
    if (pair->peer.task != each.task)
      return error(Code::kFailedPrecondition, "[net] {} is at {}:{}, not {}",
                   pair->peer.task.to_string(), each.address.host,
                   each.address.port, name);
    members.push_back(std::make_shared<Member>(threads, std::move(*pair),
                                               each.address, each.task));
  }
  for (size_t i = 0; i < members.size(); ++i) {
    TAGFLOW_ASSIGN(const auto devices, members[i]->devices());
    for (const graph::DeviceInfo& info : devices) {
      if (info.name.job != members[i]->task().job ||
          info.name.task != int(members[i]->task().index) ||
          !member_named.emplace(info.name.to_string(), i).second)
        return error(Code::kFailedPrecondition, "[net] {} has a device {}",
                     members[i]->name(), info.name.to_string());
      infos.push_back(info);
      member_of.push_back(i);
    }
  }
  return {};
}

Result<std::vector<std::optional<Register>>> Cluster::Impl::split(
    std::vector<graph::Partition> partitions,
    const std::vector<std::string>& fetches,
    std::vector<std::vector<uint32_t>>& feeds) const {
  std::vector<std::optional<Register>> all(members.size());
  // The transfers of each worker, by names, with the other worker.
  struct End {
    size_t other = 0;
    bool is_sent = false;
  };
  std::vector<std::map<std::string, End>> ends(members.size());
  for (const graph::Partition& partition : partitions) {
    const size_t here = member_of[partition.device];
    if (!all[here]) all[here].emplace().fetches = fetches;
    TAGFLOW_ASSIGN(std::string bytes, graph::write_program(partition.program));
    all[here]->parts.push_back(
        {infos[partition.device].name.to_string(), std::move(bytes)});
    for (uint32_t i = 0; i < partition.program.feeds.size(); ++i)
      if (partition.program.feeds[i].node != nullptr &&
          !std::ranges::count(feeds[here], i))
        feeds[here].push_back(i);
    for (const graph::Node* node : partition.program.graph.nodes()) {
      if (!graph::is_transfer(*node)) continue;
      TAGFLOW_ASSIGN(auto name, graph::transfer_name_of(*node));
      const auto other =
          member_named.find(name.is_sent ? name.receiver : name.sender);
      if (other == member_named.end())
        return invalid_argument("[net] {:?} is for no worker of the cluster",
                                name.key);
      if (other->second != here)
        ends[here].emplace(std::move(name.key),
                           End{other->second, name.is_sent});
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::map<size_t, uint32_t> peers;  // by member: the index
    for (const auto& [name, end] : ends[i]) {
      const auto [peer, is_new] =
          peers.emplace(end.other, uint32_t(all[i]->peers.size()));
      if (is_new) all[i]->peers.push_back(members[end.other]->as_peer());
      all[i]->transfers.push_back({name, peer->second, end.is_sent});
    }
  }
  return all;
}

void Cluster::Impl::release(uint64_t executable,
                            const std::vector<size_t>& of) noexcept {
  // Without memory, the worker keeps it until its master leaves.
  for (const size_t i : of)
    static_cast<void>(guarded("net", [&] {
      return members[i]->send(Register{.executable = executable});
    }));
}

Cluster::Cluster(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Cluster::~Cluster() = default;

Result<std::shared_ptr<Cluster>> Cluster::connect(ClusterOptions options) {
  return guarded("net", [&]() -> Result<std::shared_ptr<Cluster>> {
    TAGFLOW_ASSIGN(IoThreads threads, IoThreads::start());
    // The last step of a session may end on a thread of the links, and with it
    // the cluster: then another thread ends these threads.
    const std::shared_ptr<Impl> impl(
        new Impl(std::move(threads)), [](Impl* last) {
          if (last->threads.small->is_current() ||
              last->threads.bulk->is_current()) {
            actors::destroy_elsewhere([last] { delete last; });
          } else {
            delete last;
          }
        });
    TAGFLOW_RETURN_IF_ERROR(impl->connect(options));
    return std::shared_ptr<Cluster>(new Cluster(impl));
  });
}

std::span<const graph::DeviceInfo> Cluster::devices() const {
  return impl_->infos;
}

const graph::KernelCatalog& Cluster::kernels() const { return impl_->kernels; }

Result<actors::Backend::Made> Cluster::make(
    std::vector<graph::Partition> partitions, std::vector<std::string> fetches,
    graph::Budget* budget) {
  std::vector<std::vector<uint32_t>> feeds(impl_->members.size());
  TAGFLOW_ASSIGN(auto registers,
                 impl_->split(std::move(partitions), fetches, feeds));
  const std::lock_guard lock(impl_->mutex);
  const uint64_t number = ++impl_->requests;
  std::vector<size_t> used;
  for (size_t i = 0; i < registers.size(); ++i)
    if (registers[i]) used.push_back(i);
  // Whoever has a part of the executable keeps it at the workers.
  const std::shared_ptr<void> registered(
      nullptr,
      [impl = impl_, number, used](void*) { impl->release(number, used); });
  for (const size_t i : used) {
    registers[i]->executable = number;
    TAGFLOW_RETURN_IF_ERROR(impl_->members[i]->send(*registers[i]));
  }
  Made made;
  std::vector<std::shared_ptr<Part>> parts;
  bool updates_state = false;
  for (const size_t i : used) {
    TAGFLOW_ASSIGN(Reply reply, impl_->members[i]->reply(number, budget));
    updates_state = updates_state || reply.updates_state;
    made.warnings.insert(made.warnings.end(), reply.warnings.begin(),
                         reply.warnings.end());
    // It keeps the members, too.
    struct Kept {
      std::shared_ptr<void> registered;
      Part part;
    };
    const std::shared_ptr<Kept> kept(new Kept{
        registered,
        {impl_->members[i], number, std::move(feeds[i]), fetches.size()}});
    parts.emplace_back(kept, &kept->part);
  }
  made.executable = std::make_shared<ClusterExecutable>(
      std::move(parts), std::move(fetches), updates_state, impl_->steps);
  return made;
}

Status Cluster::reset(const std::vector<std::string>& containers) {
  const std::lock_guard lock(impl_->mutex);
  const uint64_t number = ++impl_->requests;
  for (const auto& member : impl_->members)
    TAGFLOW_RETURN_IF_ERROR(member->send(Reset{number, containers}));
  Status first;
  for (const auto& member : impl_->members)
    if (Status status = member->reply(number, nullptr).status();
        !status.ok() && first.ok())
      first = std::move(status);
  return first;
}

}  // namespace tagflow::net
