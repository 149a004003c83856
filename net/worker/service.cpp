#include "net/worker/service.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "devices/files/host_access.h"
#include "graph/fault.h"
#include "net/link/life_signs.h"
#include "net/transfer/identity.h"
#include "net/transfer/reports.h"

namespace tagflow::net {
namespace {

// Those that were lost do not count.
constexpr size_t kMostSessions = 1024;
// What the thread of run() has to do: more than a master asks for that has
// registered, and releases, as many executables as it may. A Reset takes as
// much memory as a frame.
constexpr size_t kMostJobs = 16384, kMostResets = 256;
// Between two looks at the steps that run.
constexpr std::chrono::milliseconds kLook{50};
// For a master that reads why its worker leaves.
constexpr std::chrono::milliseconds kPatience{200};

// Nothing: as the policy says of all files.
std::optional<graph::FileScope> scope_of_shards(const WorkerOptions& options) {
  if (options.checkpoints.empty()) return std::nullopt;
  return graph::FileScope::beneath(options.checkpoints);
}

// Which nodes may be in a graph. What uses files passes if some node of a
// checkpoint may write: HostAccess refuses the paths of all others.
graph::OpPolicy policy_of_nodes(const WorkerOptions& options) {
  graph::OpPolicy policy = options.policy;
  const auto shards = scope_of_shards(options);
  if (shards && policy.writes.is_nowhere()) policy.writes = *shards;
  return policy;
}

Registrar registrar_of(const WorkerOptions& options,
                       std::shared_ptr<actors::DeviceSet> devices) {
  return {.task = options.task.to_string(),
          .devices = std::move(devices),
          .policy = policy_of_nodes(options),
          .files = std::make_shared<devices::HostAccess>(
              options.policy, options.print_sink, scope_of_shards(options)),
          .on_warning =
              [&options](const std::string& text) {
                options.on_event({.text = text});
              },
          .functions = {},
          .counts = {}};
}

}  // namespace

Service::Service(const WorkerOptions& options, const IoThreads& threads,
                 std::shared_ptr<actors::DeviceSet> devices, Control& control,
                 StepCounts& counts)
    : options_(options),
      threads_(threads),
      devices_(std::move(devices)),
      control_(control),
      counts_(counts),
      state_(devices_),
      registrar_(registrar_of(options, devices_)) {}

Result<std::unique_ptr<Service>> Service::start(
    const WorkerOptions& options, const IoThreads& threads,
    std::shared_ptr<actors::DeviceSet> devices, Control& control,
    StepCounts& counts, uint16_t port) {
  std::unique_ptr<Service> service(
      new Service(options, threads, std::move(devices), control, counts));
  TAGFLOW_ASSIGN(service->identity_,
                 make_identity(Role::kWorker, options.task, options.cluster,
                               options.secret, options.tls));
  service->identity_.node = control.node();
  Service* const self = service.get();
  TAGFLOW_ASSIGN(
      service->listener_,
      Listener::start(
          *threads.bulk,
          {.host = options.host,
           .port = port,
           .only_loopback = !options.beyond_loopback && options.tls == nullptr,
           .has_local_door = options.has_local_door,
           .on_refused =
               [self](const Status& why) {
                 self->options_.on_event(Event::warning(why));
               }},
          service->identity_,
          [self](const Greeting& peer) { return self->admit(peer); },
          [self](Connection connection) {
            self->on_connection(std::move(connection));
          }));
  return service;
}

Service::~Service() {
  listener_.reset();
  const Status reason =
      error(Code::kUnavailable, "[net] {} has left the cluster",
            options_.task.to_string());
  close(reason);
  std::string bye = "the worker is closed";
  {
    const std::lock_guard lock(mutex_);
    if (departure_.is_free()) bye = "it was asked to, and its steps are over";
  }
  if (master_ != nullptr) static_cast<void>(master_->send(Bye{bye}));
  {
    // No step can be added any more.
    std::unique_lock lock(mutex_);
    std::vector<std::shared_ptr<actors::Step>> steps;
    for (const auto& [number, running] : running_)
      if (running.step != nullptr) steps.push_back(running.step);
    lock.unlock();
    for (const auto& step : steps) step->fail(reason);
    steps.clear();
    feeds_.close(reason);
    lock.lock();
    changed_.wait(lock, [this] { return running_.empty(); });
    // The master closes the links when it has read why. If this side did, the
    // end of the bulk link might arrive before the reason.
    if (master_ != nullptr)
      changed_.wait_for(lock, kPatience,
                        [this] { return !master_->lost().ok(); });
  }
  // Handlers of the master's links use what goes next, and the pointer, which
  // reset() takes away first.
  if (master_ != nullptr) master_->stop();
  for (const auto& [id, sessions] : sessions_)
    sessions.back().session->leave(bye);
  sessions_.clear();
  master_.reset();
  feeds_.join();
  executables_.clear();
  registrar_.close_functions();
}

// --- The thread of run() ----------------------------------------------------

Status Service::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (jobs_.size() >= kMostJobs)
    return error(Code::kResourceExhausted,
                 "[net] {} requests of the master wait, the limit",
                 jobs_.size());
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

Status Service::run() {
  const auto is_called = [this] {
    return is_closed_ || departure_.is_free() || !jobs_.empty() || has_lost_;
  };
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_look;
  std::unique_lock lock(mutex_);
  for (;;) {
    // While steps follow each other, none of them wakes this thread.
    if (!is_looking_) {
      changed_.wait(lock, [&] { return is_looking_ || is_called(); });
      next_look = Clock::now() + kLook;
    }
    if (is_looking_) changed_.wait_until(lock, next_look, is_called);
    if (is_closed_) return reason_;
    if (departure_.is_free())
      return error(Code::kCancelled, "the steps are over");
    if (is_looking_ && Clock::now() >= next_look) {
      is_looking_ = !running_.empty();
      // Without memory, the next look tells.
      static_cast<void>(guarded([this] { look_at_steps(); }));
      next_look = Clock::now() + kLook;
    }
    if (has_lost_) drop_lost_sessions(lock);
    if (jobs_.empty()) continue;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    // The master would wait for the answer of a job that was not done.
    if (Status failed = guarded("net", job); !failed.ok())
      close(std::move(failed));
    lock.lock();
    // An executable that has gone names no session any more.
    has_lost_ = true;
  }
}

void Service::close(Status reason) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) reason_ = std::move(reason);
  is_closed_ = true;
  executables_.close();
  changed_.notify_all();
}

void Service::drain() {
  const std::lock_guard lock(mutex_);
  if (departure_.begin(master_ != nullptr))
    static_cast<void>(master_->send(Drain()));
  changed_.notify_all();
}

Status Service::on_agreed() {
  const std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(departure_.on_agreed());
  executables_.close();
  changed_.notify_all();
  return {};
}

void Service::look_at_steps() {
  for (auto& [number, running] : running_) {
    const Report report = look(number, running);
    if (running.quiet.on_time(std::chrono::steady_clock::now()))
      send_report(report, running);
  }
}

// Each message that wakes a part is counted while the part has a unit. So if
// the part is quiet between two equal counts, these are those of that moment;
// and if it is quiet at the next look, with the same counts, it was meanwhile,
// unless it waited for other runs: then resume_step() tells its end.
Report Service::look(uint64_t step, Running& running) {
  const MessageCounts before = parts_.counts(step);
  Report report{.step = step};
  if (running.step != nullptr) {
    report.is_quiet = running.step->waits_for_peers();
    if (!report.is_quiet && running.step->waits_for_state()) {
      report.waits = running.step->describe_waits();
      report.is_quiet = true;
    }
  }
  const MessageCounts counts = parts_.counts(step);
  report.is_quiet = report.is_quiet && counts == before;
  report.sent = counts.sent;
  report.received = counts.received;
  if (report.is_quiet) {
    running.quiet.on_quiet(counts, std::chrono::steady_clock::now());
  } else {
    running.quiet.on_busy();
    report.waits.clear();
  }
  return report;
}

void Service::send_report(const Report& report, Running& running) {
  running.is_stalled = !report.waits.empty();
  static_cast<void>(guarded("net", [&] { return master_->send(report); }));
}

void Service::resume_step(uint64_t step) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(step);
  if (found == running_.end() || !found->second.is_stalled) return;
  found->second.quiet.on_busy();
  send_report({.step = step}, found->second);
}

void Service::take_register(std::string_view bytes) {
  const auto registration = parse_register(bytes);
  if (!registration.ok()) return master_->close(registration.status());
  const uint64_t number = registration->executable;
  const Result<bool> is_wanted = executables_.begin(number);
  if (is_wanted.ok() && !*is_wanted) return;
  Reply reply{.request = number};
  Status status = is_wanted.status();
  if (status.ok()) {
    graph::Budget budget({.is_cancelled = [this, number] {
      return executables_.is_released(number);
    }});
    const auto made =
        guarded("net", [&] { return make(*registration, budget); });
    if (!executables_.end(number, made.ok() ? *made : nullptr)) return;
    status = made.status();
    if (made.ok()) {
      reply.updates_state = (*made)->executable->updates_state();
      reply.warnings = (*made)->warnings;
    }
  }
  if (!status.ok())
    reply.outcome = outcome_of(status, options_.task.to_string());
  if (!master_->send(reply).ok()) {  // it is too long
    reply.warnings.clear();
    static_cast<void>(master_->send(reply));
  }
}

Result<std::shared_ptr<Registered>> Service::make(const Register& registration,
                                                  graph::Budget& budget) {
  TAGFLOW_ASSIGN(const auto sessions, sessions_of(registration, budget));
  return compile_registration(registration, registrar_, sessions, parts_,
                              budget);
}

std::shared_ptr<PeerSession> Service::session_with(const PeerId& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {};
  const Session& last = found->second.back();
  if (!last.session->lost().ok()) return {};
  return {last.use, last.session.get()};
}

void Service::drop_lost_sessions(std::unique_lock<std::mutex>& lock) {
  has_lost_ = false;
  std::list<Session> dropped;
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    std::list<Session>& all = at->second;
    for (auto next = all.begin(); next != all.end();) {
      const auto one = next++;
      if (one->use.use_count() == 1 && !one->session->lost().ok())
        dropped.splice(dropped.end(), all, one);
    }
    at = all.empty() ? sessions_.erase(at) : std::next(at);
  }
  if (dropped.empty()) return;
  // Their handlers take the lock.
  lock.unlock();
  for (const Session& one : dropped) {
    one.session->stop();
    parts_.forget(*one.session);
  }
  dropped.clear();
  lock.lock();
}

Result<std::vector<std::shared_ptr<PeerSession>>> Service::sessions_of(
    const Register& registration, graph::Budget& budget) {
  const std::string self = options_.task.to_string();
  // Of two workers, the one with the first name connects.
  for (const Register::Peer& peer : registration.peers) {
    const PeerId id{peer.task.to_string(), peer.incarnation};
    if (self >= id.first) continue;
    {
      const std::lock_guard lock(mutex_);
      if (session_with(id) != nullptr) continue;
    }
    auto pair = connect_pair(*threads_.bulk, {peer.host, peer.port}, identity_,
                             peer.incarnation, {}, &budget);
    if (!pair.ok())
      return std::move(pair).status().with_prefix(
          fmt::format("[net] {}: ", id.first));
    pair->peer.task = peer.task;
    adopt_peer(std::move(*pair));
  }
  std::vector<std::shared_ptr<PeerSession>> sessions;
  const auto end = std::chrono::steady_clock::now() + 2 * kHelloTime;
  std::unique_lock lock(mutex_);
  for (const Register::Peer& peer : registration.peers) {
    const PeerId id{peer.task.to_string(), peer.incarnation};
    std::shared_ptr<PeerSession> session;
    while ((session = session_with(id)) == nullptr) {
      if (is_closed_) return reason_;
      TAGFLOW_RETURN_IF_ERROR(budget.look());
      if (std::chrono::steady_clock::now() >= end)
        return error(Code::kUnavailable, "[net] {} did not connect to {}",
                     id.first, self);
      changed_.wait_for(lock, kBudgetLook);
    }
    sessions.push_back(std::move(session));
  }
  return sessions;
}

Status Service::on_reset(Reset reset) {
  {
    const std::lock_guard lock(mutex_);
    if (num_resets_ >= kMostResets)
      return error(Code::kResourceExhausted, "[net] {} Resets wait, the limit",
                   num_resets_);
    ++num_resets_;
  }
  return post([this, reset = std::move(reset)] { take_reset(reset); });
}

void Service::take_reset(const Reset& reset) {
  {
    const std::lock_guard lock(mutex_);
    --num_resets_;
  }
  const Status status =
      guarded("net", [&] { state_.resources().reset(reset.containers); });
  static_cast<void>(master_->send(
      Reply{.request = reset.request,
            .outcome = outcome_of(status, options_.task.to_string())}));
}

// --- Connections ------------------------------------------------------------

Status Service::admit(const Greeting& peer) {
  if (peer.purpose == Purpose::kControl) return control_.admit(peer);
  const std::lock_guard lock(mutex_);
  if (peer.role == Role::kMaster && departure_.has_begun())
    return error(Code::kUnavailable, "the worker is leaving the cluster");
  if (peer.role == Role::kMaster && master_ != nullptr)
    return error(Code::kFailedPrecondition, "the worker has another master");
  const auto num_sessions =
      size_t(std::ranges::count_if(sessions_, [](const auto& entry) {
        return entry.second.back().session->lost().ok();
      }));
  if (peer.role == Role::kWorker && num_sessions >= kMostSessions)
    return error(Code::kResourceExhausted,
                 "{} workers are connected, the limit", kMostSessions);
  return {};
}

void Service::on_connection(Connection connection) {
  if (connection.peer.purpose == Purpose::kControl)
    return control_.take(std::move(connection));
  std::optional<Pairing::Pair> pair;
  {
    const std::lock_guard lock(mutex_);
    pair = pairing_.add(std::move(connection));
  }
  if (!pair) return;
  if (pair->peer.role == Role::kMaster) {
    adopt_master(std::move(*pair));
  } else {
    adopt_peer(std::move(*pair));
  }
}

void Service::adopt_master(Pairing::Pair pair) {
  auto channel = std::make_unique<Channel>(threads_, std::move(pair.small),
                                           std::move(pair.bulk), kMaster);
  Channel* const master = channel.get();
  {
    const std::lock_guard lock(mutex_);
    // A second one is closed on the thread of run(), which owns no link's.
    if (master_ != nullptr || is_closed_ || departure_.has_begun()) {
      jobs_.push_back(
          [second = std::shared_ptr<Channel>(std::move(channel))] {});
      changed_.notify_all();
      return;
    }
    master_ = std::move(channel);
  }
  master->start(
      {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
       .on_begin = [this](const Begin& begin) { return on_begin(begin); },
       .on_end = [this](ObjectId object,
                        const Status& status) { on_end(object, status); },
       .on_lost = [this](const Status& status) { close(status); }});
  static_cast<void>(master->send(devices_of(devices_->infos())));
  options_.on_event({.kind = Event::Kind::kNews,
                     .text = "the master has come",
                     .peer = kMaster});
}

void Service::adopt_peer(Pairing::Pair pair) {
  const Task task = pair.peer.task;
  const uint64_t incarnation = pair.peer.incarnation;
  const PeerId id{task.to_string(), incarnation};
  // The peer has lost what it had, or it would not connect. The master has to
  // hear of it before it hears of what uses the new session.
  std::unique_lock lock(mutex_);
  const std::shared_ptr<PeerSession> older = session_with(id);
  lock.unlock();
  if (older != nullptr)
    older->close(
        error(Code::kUnavailable, "[net] {} has connected anew", id.first));
  // Memory is taken before the session starts, and without the lock.
  Sessions made;
  made[id].push_back({std::make_unique<PeerSession>(
      threads_, std::move(pair.small), std::move(pair.bulk), id.first)});
  PeerSession& session = *made[id].back().session;
  // Both ends tell the master, who knows the steps: Note [End of a step].
  session.start(parts_, [this, task, incarnation](const Status& status) {
    Event event = Event::news(status, task.to_string());
    // A peer that leaves is no error.
    if (event.text.find(kLeaves) != event.text.npos) event.code = Code::kOk;
    options_.on_event(event);
    Channel* master = nullptr;  // a peer may come before it
    {
      const std::lock_guard held(mutex_);
      master = master_.get();
      has_lost_ = true;
      changed_.notify_all();
    }
    if (master != nullptr)
      static_cast<void>(
          master->send(PairLost{task, incarnation, outcome_of(status)}));
  });
  lock.lock();
  auto put = sessions_.insert(made.extract(made.begin()));
  if (!put.inserted) {
    std::list<Session>& all = put.position->second;
    all.splice(all.end(), put.node.mapped());
  }
  // It may have been lost before it was here.
  has_lost_ = true;
  changed_.notify_all();
}

// --- What the master sends --------------------------------------------------

Result<BulkLink::Destination> Service::on_begin(const Begin& begin) {
  if (begin.kind == ObjectKind::kTensor) return feeds_.begin(begin);
  auto to = registers_.begin(begin);
  // No Reply would come: what it answers is in the bytes that are dropped.
  if (!to.ok())
    static_cast<void>(master_->send(Bye{std::string(to.status().message())}));
  return to;
}

void Service::on_end(ObjectId object, const Status& status) {
  auto bytes = registers_.end(object);
  if (bytes == nullptr) return feeds_.end(object, status);
  if (!status.ok()) return;
  const Status posted =
      post([this, bytes = std::move(bytes)] { take_register(bytes->view()); });
  if (!posted.ok()) master_->close(posted);
}

Status Service::on_frame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kRun: {
      TAGFLOW_ASSIGN(Run run, parse_body<Run>(frame.body));
      return on_run(std::move(run));
    }
    case FrameKind::kAbort: {
      TAGFLOW_ASSIGN(const Abort abort, parse_body<Abort>(frame.body));
      on_abort(abort);
      return {};
    }
    case FrameKind::kAsk: {
      TAGFLOW_ASSIGN(const Ask ask, parse_body<Ask>(frame.body));
      on_ask(ask);
      return {};
    }
    case FrameKind::kRelease: {
      TAGFLOW_ASSIGN(const Release release, parse_body<Release>(frame.body));
      return on_release(release);
    }
    case FrameKind::kLook: {
      TAGFLOW_ASSIGN(const Look look, parse_body<Look>(frame.body));
      return on_look(look);
    }
    case FrameKind::kSteer: {
      TAGFLOW_ASSIGN(Steer steer, parse_body<Steer>(frame.body));
      return on_steer(std::move(steer));
    }
    case FrameKind::kDrain:
      TAGFLOW_RETURN_IF_ERROR(parse_body<Drain>(frame.body).status());
      return on_agreed();
    case FrameKind::kReset: {
      TAGFLOW_ASSIGN(Reset reset, parse_body<Reset>(frame.body));
      return on_reset(std::move(reset));
    }
    default:
      return error(Code::kDataLoss, "[net] a master sends no {}",
                   kind_name(frame.kind));
  }
}

}  // namespace tagflow::net
