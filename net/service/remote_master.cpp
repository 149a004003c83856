#include "net/service/remote_master.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "actors/runtime/step.h"
#include "actors/session/joined_executable.h"
#include "actors/session/served_session.h"
#include "devices/kernel_catalog.h"
#include "graph/budget.h"
#include "graph/fault.h"
#include "graph/file/graphdef.h"
#include "net/master/member.h"
#include "net/master/steps.h"
#include "net/transfer/identity.h"

namespace tagflow::net {

class RemoteMaster::Impl {
 public:
  explicit Impl(IoThreads io_threads) : threads(std::move(io_threads)) {}
  ~Impl() {
    if (member == nullptr) return;
    member->leave();
    member->await_end(std::chrono::steady_clock::now() +
                      std::chrono::milliseconds(100));
  }

  Status connect(const RemoteMasterOptions& options);
  // Asks, and waits for the answer.
  Result<Reply> ask(const ServiceRequest& request, graph::Budget* budget) {
    TAGFLOW_RETURN_IF_ERROR(member->send(request));
    return member->reply(request.number(), budget);
  }

  IoThreads threads;  // destroyed last
  std::unique_ptr<Steps> steps;
  std::unique_ptr<Member> member;  // the service
  std::vector<graph::DeviceInfo> infos;
  const devices::RegisteredKernels kernels;
  std::atomic<uint64_t> last_number{0};
};

namespace {

using Shared = std::shared_ptr<RemoteMaster::Impl>;

// A session or an executable at the service, until the end of this.
class Numbered {
 public:
  explicit Numbered(Shared master)
      : master_(std::move(master)), number_(++master_->last_number) {}
  ~Numbered() {
    // Without memory, the service keeps it until the client leaves.
    static_cast<void>(
        guarded("net", [&] { return master_->member->release(number_); }));
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;

  RemoteMaster::Impl& master() const { return *master_; }
  const Shared& shared() const { return master_; }
  uint64_t number() const { return number_; }

 private:
  const Shared master_;
  const uint64_t number_;
};

// A signature at the service: of a step, it runs all.
class ServedRuns final : public actors::RemotePart {
 public:
  ServedRuns(std::shared_ptr<Numbered> executable, ClusterProgram program)
      : executable_(std::move(executable)), program_(std::move(program)) {}

  // A worker of the service that is lost takes what was compiled for it along.
  bool is_lost() const override {
    return *is_stale_ || !steps().check_links(program_).ok();
  }
  std::string describe_wait(uint64_t step) const override {
    return steps().describe_wait(program_, step);
  }
  std::string describe_stall(uint64_t step) const override {
    return steps().describe_stall(program_, step);
  }
  void start(const Order& order, std::function<void(Done)> done) override {
    steps().start(program_, order,
                  [is_stale = is_stale_, done = std::move(done)](Done answer) {
                    if (answer.fetches.status().code() == Code::kUnavailable)
                      *is_stale = true;
                    done(std::move(answer));
                  });
  }
  void abort(uint64_t step, const Status& reason) override {
    steps().stop(program_, step, reason);
  }

 private:
  Steps& steps() const { return *executable_->master().steps; }

  const std::shared_ptr<Numbered> executable_;
  const ClusterProgram program_;
  const std::shared_ptr<std::atomic<bool>> is_stale_ =
      std::make_shared<std::atomic<bool>>(false);
};

class RemoteSession final : public actors::ServedSession {
 public:
  explicit RemoteSession(Shared master) : at_service_(std::move(master)) {}

  Status open(const actors::SessionOptions& options) {
    return master()
        .ask({number(),
              ServiceRequest::Open{
                  .passes = options.passes.to_string(),
                  .window = uint32_t(options.window),
                  .max_call_depth = uint32_t(options.max_call_depth),
                  .max_open_calls = uint32_t(options.max_open_calls),
                  .max_nodes = options.max_nodes,
                  .soft_placement = options.soft_placement,
                  .schedule_receives = options.schedule_receives,
                  .scatter = options.scatter,
                  .seed = options.seed,
                  .lossy = options.lossy}},
             nullptr)
        .status();
  }

  Result<actors::Backend::Made> make(const graph::Graph& graph,
                                     const actors::Signature& signature,
                                     const actors::Request& request,
                                     graph::Budget* budget) override {
    actors::Backend::Made made;
    if (budget != nullptr) budget->begin("the service compiled it");
    TAGFLOW_RETURN_IF_ERROR(send_graph(graph, made.warnings, budget));
    const auto executable = std::make_shared<Numbered>(at_service_.shared());
    TAGFLOW_ASSIGN(Reply reply,
                   master().ask({number(),
                                 ServiceRequest::Prepare{
                                     executable->number(), signature.feeds,
                                     signature.fetches, signature.targets}},
                                budget));
    made.warnings.insert(made.warnings.end(), reply.warnings.begin(),
                         reply.warnings.end());
    ClusterProgram program;
    ClusterPart& part = program.parts.emplace_back();
    part.member = master().member.get();
    part.executable = executable->number();
    part.feeds.resize(signature.feeds.size());
    std::iota(part.feeds.begin(), part.feeds.end(), 0);
    part.updates_state = reply.updates_state;
    for (const graph::Endpoint& from : request.fetches)
      program.fetches.push_back(
          {part.member->index(),
           remove_ref(from.node->output_dtypes()[size_t(from.port)]),
           from.node->output_shape(from.port)});
    made.executable = std::make_shared<actors::JoinedExecutable>(
        std::vector<std::shared_ptr<actors::RemotePart>>{
            std::make_shared<ServedRuns>(executable, std::move(program))},
        signature.fetches, reply.updates_state);
    return made;
  }

 private:
  RemoteMaster::Impl& master() const { return at_service_.master(); }
  uint64_t number() const { return at_service_.number(); }
  // What the graph has gained since the last time.
  Status send_graph(const graph::Graph& graph,
                    std::vector<std::string>& warnings, graph::Budget* budget) {
    const size_t num_functions = graph.library().size();
    if (num_nodes_ == graph.size() && num_functions_ == num_functions)
      return {};
    TAGFLOW_ASSIGN(std::string bytes, graph::write_graphdef(graph));
    TAGFLOW_ASSIGN(
        Reply reply,
        master().ask({number(), ServiceRequest::Extend{std::move(bytes)}},
                     budget));
    num_nodes_ = graph.size();
    num_functions_ = num_functions;
    warnings = std::move(reply.warnings);
    return {};
  }

  const Numbered at_service_;  // the session
  // Nodes and functions of the graph that the service has.
  size_t num_nodes_ = 0;
  size_t num_functions_ = 0;
};

// Runs of a watch: Note [Watching runs] in master_service.h.
class Watchers {
 public:
  Watchers(Steps& steps, Member& service, uint64_t watch, actors::Trace& trace)
      : steps_(steps), trace_(trace) {
    program_.parts.push_back({&service, watch, {}, false});
  }
  ~Watchers() {
    for (const uint64_t step : waiting())
      steps_.stop(program_, step, error(Code::kCancelled, "nobody watches"));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty(); });
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  void add() {
    actors::Step step(++last_step_, 0);
    step.info.step_id = last_step_;
    step.trace = &trace_;
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(last_step_);
    }
    steps_.start(program_, {step, {}, false},
                 [this, id = last_step_](const actors::RemotePart::Done& done) {
                   const std::lock_guard lock(mutex_);
                   waiting_.erase(id);
                   if (done.fetches.ok()) ++num_over_;
                   if (first_.ok()) first_ = done.fetches.status();
                   changed_.notify_all();
                 });
  }
  // Waits a moment for the end of one.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kBudgetLook);
  }
  int num_waiting() { return int(waiting().size()); }
  int num_over() {
    const std::lock_guard lock(mutex_);
    return num_over_;
  }
  // The first error of one.
  Status status() {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  std::set<uint64_t> waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  Steps& steps_;
  actors::Trace& trace_;
  ClusterProgram program_;
  uint64_t last_step_ = 0;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::set<uint64_t> waiting_;
  int num_over_ = 0;
  Status first_;
};

}  // namespace

Status RemoteMaster::Impl::connect(const RemoteMasterOptions& options) {
  TAGFLOW_ASSIGN(const Identity identity,
                 make_identity(Role::kClient, {"client", 0}, options.name,
                               options.secret, options.tls));
  auto pair = connect_pair(*threads.bulk, options.address, identity, 0,
                           options.patience);
  if (!pair.ok()) {
    // A time-out of the connector is not one of a run.
    const Code code = pair.status().code() == Code::kDeadlineExceeded
                          ? Code::kUnavailable
                          : pair.status().code();
    return error(code, "the master service: {}", pair.status().message());
  }
  const Task task = pair->peer.task;
  const Incarnation incarnation{pair->peer.incarnation};
  const TaskIndex index{0};
  // It ends runs that its workers do not end in their time.
  constexpr std::chrono::seconds kGrace{30 * kSlowness};
  // The service knows which state is torn.
  steps = std::make_unique<Steps>(
      *threads.bulk, Steps::Options{{task.to_string()}, true, kGrace});
  TAGFLOW_RETURN_IF_ERROR(steps->on_hello(index, incarnation));
  member = std::make_unique<Member>(threads, std::move(*pair), options.address,
                                    task, index, *steps);
  TAGFLOW_ASSIGN(infos, member->devices());
  steps->on_ready(*member);
  return {};
}

RemoteMaster::RemoteMaster(std::shared_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
RemoteMaster::~RemoteMaster() = default;

Result<std::shared_ptr<RemoteMaster>> RemoteMaster::connect(
    RemoteMasterOptions options) {
  return guarded("net", [&]() -> Result<std::shared_ptr<RemoteMaster>> {
    TAGFLOW_ASSIGN(IoThreads threads, IoThreads::start());
    const Shared impl = share_with_threads(new Impl(std::move(threads)));
    TAGFLOW_RETURN_IF_ERROR(impl->connect(options));
    return std::shared_ptr<RemoteMaster>(new RemoteMaster(impl));
  });
}

std::span<const graph::DeviceInfo> RemoteMaster::devices() const {
  return impl_->infos;
}

const graph::KernelCatalog& RemoteMaster::kernels() const {
  return impl_->kernels;
}

Result<std::shared_ptr<actors::ServedSession>> RemoteMaster::open(
    const actors::SessionOptions& options) {
  const auto session = std::make_shared<RemoteSession>(impl_);
  TAGFLOW_RETURN_IF_ERROR(session->open(options));
  return std::shared_ptr<actors::ServedSession>(session);
}

Result<actors::Backend::Made> RemoteMaster::make(
    std::vector<graph::Partition> /*partitions*/,
    std::vector<std::string> /*fetches*/,
    const actors::SessionOptions& /*options*/, graph::Budget* /*budget*/) {
  return error(Code::kInternal,
               "[service] a service cuts the graphs of its clients itself");
}

Result<int> RemoteMaster::watch(actors::Trace& trace, int most,
                                const std::function<bool()>& goes_on) {
  // So that the next run does not begin before the service hears that somebody
  // watches again.
  constexpr int kAtOnce = 4;
  const Numbered number(impl_);
  TAGFLOW_RETURN_IF_ERROR(
      impl_->ask({0, ServiceRequest::Watch{number.number()}}, nullptr)
          .status());
  Watchers watchers(*impl_->steps, *impl_->member, number.number(), trace);
  for (;;) {
    TAGFLOW_RETURN_IF_ERROR(watchers.status());
    const int num_over = watchers.num_over();
    if (num_over >= most || trace.room() == 0 || !goes_on()) return num_over;
    const int wanted = std::min(kAtOnce, most - num_over);
    for (int i = watchers.num_waiting(); i < wanted; ++i) watchers.add();
    watchers.wait();
  }
}

Status RemoteMaster::reset(const std::vector<std::string>& containers) {
  const uint64_t number = ++impl_->last_number;
  TAGFLOW_RETURN_IF_ERROR(impl_->member->send(Reset{number, containers}));
  return impl_->member->reply(number, nullptr).status();
}

}  // namespace tagflow::net
