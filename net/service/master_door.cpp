#include "net/service/master_door.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "graph/fault.h"
#include "net/link/life_signs.h"
#include "net/link/listener.h"
#include "net/transfer/channel.h"
#include "net/transfer/identity.h"
#include "net/transfer/object_tensor.h"
#include "net/transfer/pairing.h"
#include "net/transfer/reports.h"
#include "net/transfer/trace_bytes.h"
#include "net/transfer/values.h"
#include "net/worker/register_inputs.h"

namespace tagflow::net {
namespace {

// Requests of a client that wait for its thread. A Reset takes as much memory
// as a frame.
constexpr size_t kMostJobs = 4096, kMostResets = 64;
// Between two looks at runs that wait for their turn.
constexpr std::chrono::milliseconds kLook{10};

using Values = std::vector<std::pair<uint32_t, Tensor>>;

// What the feeds in a message take.
uint64_t bytes_of(const std::vector<Run::Feed>& feeds) {
  uint64_t bytes = 0;
  for (const Run::Feed& feed : feeds) {
    bytes += sizeof(feed);
    if (const auto* tensor = std::get_if<Tensor>(&feed.value))
      bytes += memory_of(*tensor);
  }
  return bytes;
}

// The feeds in their order. InvalidArgument unless there is one of each index.
Result<std::vector<Tensor>> in_order(Values values) {
  std::vector<Tensor> feeds(values.size());
  for (auto& [index, tensor] : values) {
    if (index >= feeds.size() || feeds[index].valid())
      return invalid_argument("[service] feed {} is not one of {}", index,
                              feeds.size());
    feeds[index] = std::move(tensor);
  }
  return feeds;
}

}  // namespace

// One client. Life: made; started; lost, when a connection is; over, when its
// client has left; then the door destroys it.
class MasterDoor::Link {
 public:
  Link(Impl& door, MasterService& service, const IoThreads& threads,
       Pairing::Pair pair, std::unique_ptr<MasterService::Client> client)
      : door_(door),
        service_(service),
        feeds_(TensorInputs::kPatience, service.limits().bytes),
        requests_(service.limits().bytes),
        client_(std::move(client)),
        channel_(threads, std::move(pair.small), std::move(pair.bulk),
                 "a client") {}
  ~Link() {
    {
      const std::lock_guard lock(mutex_);
      is_lost_ = true;  // if it could not be started
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    feeds_.join();
  }

  void start();
  // It could not be started.
  void give_up() { is_over_ = true; }
  // The client closes it then.
  void say_bye(const Status& reason) {
    static_cast<void>(channel_.send(Bye{std::string(reason.message())}));
  }
  void close(const Status& reason) {
    say_bye(reason);
    channel_.close(reason);
  }
  bool is_over() const { return is_over_.load(); }

 private:
  Status post(std::function<void()> job);
  void work();
  Status on_frame(const Frame& frame);
  Result<BulkLink::Destination> on_begin(const Begin& begin);
  void on_end(ObjectId object, const Status& status);
  void on_sent(ObjectId object);
  void on_lost(const Status& status);
  // An error if the client has left too much where it is.
  Status check_taken();
  Status on_reset(Reset reset);
  void on_run(Run run);
  // Counts a run whose feeds come; an error if there are too many.
  Status begin_wait(uint64_t bytes);
  void end_wait(uint64_t bytes);
  void start_run(const Run& run, Result<Values> values);
  // `trace` may be null.
  void send_done(uint64_t step, const Result<std::vector<Tensor>>& answer,
                 const actors::RunStats& stats, const actors::Trace* trace);
  // Sets `done`, and sends it with its objects, which count as not taken.
  Status try_send_done(uint64_t step, const Result<std::vector<Tensor>>& answer,
                       const actors::RunStats& stats,
                       const actors::Trace* trace, net::Done& done);
  void reply(uint64_t request, const Status& status,
             MasterService::Client::Answer answer = {});

  Impl& door_;
  MasterService& service_;
  TensorInputs feeds_;
  RegisterInputs requests_;
  const std::unique_ptr<MasterService::Client> client_;
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t num_resets_ = 0;  // of them
  // Runs whose feeds come, and the bytes of those that are here.
  size_t num_coming_ = 0;
  uint64_t coming_bytes_ = 0;
  bool is_lost_ = false;
  // Fetches that the system has not taken yet, by object, and their bytes.
  std::map<ObjectId, uint64_t> unsent_;
  uint64_t unsent_bytes_ = 0;
  std::thread thread_;
  Channel channel_;  // destroyed first
};

class MasterDoor::Impl {
 public:
  Impl(MasterService& service, MasterDoorOptions options)
      : service_(service), options_(std::move(options)) {}
  ~Impl();

  Status start();
  uint16_t port() const { return listener_->port(); }
  size_t num_clients();
  void warn(const Status& why) const {
    if (options_.on_event) options_.on_event(Event::warning(why));
  }
  // A link is over, or a run waits for its turn.
  void wake();

 private:
  Status admit(const Greeting& peer);
  void on_connection(Connection connection);
  // Destroys links that are over, and lets the service look at its queue.
  void serve();

  MasterService& service_;
  const MasterDoorOptions options_;
  const IoThreads& threads_ = *options_.threads;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_closed_ = false;
  bool is_awake_ = false;
  Pairing pairing_;
  std::vector<std::unique_ptr<Link>> links_;
  std::thread thread_;
  std::unique_ptr<Listener> listener_;  // destroyed first
};

// --- A client ---------------------------------------------------------------

void MasterDoor::Link::start() {
  thread_ = std::thread([this] { work(); });
  channel_.start(
      {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
       .on_begin = [this](const Begin& begin) { return on_begin(begin); },
       .on_end = [this](ObjectId object,
                        const Status& status) { on_end(object, status); },
       .on_sent = [this](ObjectId object, const Status&) { on_sent(object); },
       .on_lost = [this](const Status& status) { on_lost(status); }});
  static_cast<void>(channel_.send(devices_of(service_.devices())));
}

Status MasterDoor::Link::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (jobs_.size() >= kMostJobs)
    return error(Code::kResourceExhausted,
                 "[service] {} requests of the client wait, the limit",
                 jobs_.size());
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

void MasterDoor::Link::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_lost_ || !jobs_.empty(); });
    if (is_lost_) break;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    // The client would wait for the answer of a job that was not done.
    if (Status failed = guarded("service", job); !failed.ok()) close(failed);
  }
  client_->leave();
  is_over_ = true;
  door_.wake();
}

void MasterDoor::Link::on_lost(const Status& status) {
  if (!is_done(status)) door_.warn(status);
  client_->abandon();
  feeds_.close(status);
  const std::lock_guard lock(mutex_);
  is_lost_ = true;
  changed_.notify_all();
}

Result<BulkLink::Destination> MasterDoor::Link::on_begin(const Begin& begin) {
  if (begin.kind == ObjectKind::kTensor) return feeds_.begin(begin);
  auto to = requests_.begin(begin);
  // No Reply would come: what it answers is in the bytes that are dropped.
  if (!to.ok())
    static_cast<void>(channel_.send(Bye{std::string(to.status().message())}));
  return to;
}

void MasterDoor::Link::on_end(ObjectId object, const Status& status) {
  auto bytes = requests_.end(object);
  if (bytes == nullptr) return feeds_.end(object, status);
  if (!status.ok()) return;
  const Status posted = post([this, bytes = std::move(bytes)] {
    const auto request = parse_service_request(bytes->view());
    if (!request.ok()) return close(request.status());
    auto answer = client_->perform(*request);
    if (!answer.ok()) return reply(request->number(), answer.status());
    reply(request->number(), {}, *std::move(answer));
  });
  if (!posted.ok()) close(posted);
}

void MasterDoor::Link::on_sent(ObjectId object) {
  const std::lock_guard lock(mutex_);
  const auto node = unsent_.extract(object);
  if (!node.empty()) unsent_bytes_ -= node.mapped();
}

Status MasterDoor::Link::check_taken() {
  const std::lock_guard lock(mutex_);
  if (unsent_bytes_ <= service_.limits().bytes) return {};
  return error(Code::kResourceExhausted,
               "[service] the client has not taken {} bytes of its results; {} "
               "is the limit",
               unsent_bytes_, service_.limits().bytes);
}

Status MasterDoor::Link::on_frame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kRun: {
      TAGFLOW_ASSIGN(Run run, parse_body<Run>(frame.body));
      on_run(std::move(run));
      return {};
    }
    case FrameKind::kAbort: {
      TAGFLOW_ASSIGN(const Abort abort, parse_body<Abort>(frame.body));
      client_->cancel(abort.step, status_of(abort.cause));
      return {};
    }
    case FrameKind::kRelease: {
      TAGFLOW_ASSIGN(const Release release, parse_body<Release>(frame.body));
      TAGFLOW_ASSIGN(auto released, client_->release(release.executable));
      // Its end may wait.
      if (released == nullptr) return {};
      return post([released = std::move(released)] {});
    }
    case FrameKind::kReset: {
      TAGFLOW_ASSIGN(Reset reset, parse_body<Reset>(frame.body));
      return on_reset(std::move(reset));
    }
    default:
      return error(Code::kDataLoss, "[service] a client sends no {}",
                   kind_name(frame.kind));
  }
}

void MasterDoor::Link::reply(uint64_t request, const Status& status,
                             MasterService::Client::Answer answer) {
  Reply reply{.request = request,
              .outcome = outcome_of(status),
              .updates_state = answer.updates_state,
              .warnings = std::move(answer.warnings)};
  if (channel_.send(reply).ok()) return;
  reply.warnings.clear();  // it was too long
  static_cast<void>(channel_.send(reply));
}

Status MasterDoor::Link::on_reset(Reset reset) {
  {
    const std::lock_guard lock(mutex_);
    if (num_resets_ >= kMostResets)
      return error(Code::kResourceExhausted,
                   "[service] {} Resets of the client wait, the limit",
                   num_resets_);
    ++num_resets_;
  }
  return post([this, reset = std::move(reset)] {
    {
      const std::lock_guard lock(mutex_);
      --num_resets_;
    }
    reply(reset.request, client_->reset(reset.containers));
  });
}

Status MasterDoor::Link::begin_wait(uint64_t bytes) {
  const ServiceLimits& limits = service_.limits();
  const std::lock_guard lock(mutex_);
  if (num_coming_ >= limits.runs)
    return error(Code::kResourceExhausted,
                 "[service] {} runs of the client wait for their feeds, the "
                 "limit",
                 num_coming_);
  // One frame is always taken.
  if (coming_bytes_ > limits.bytes)
    return error(Code::kResourceExhausted,
                 "[service] runs of the client wait for feeds, and have {} "
                 "bytes of others; {} is the limit",
                 coming_bytes_, limits.bytes);
  ++num_coming_;
  coming_bytes_ += bytes;
  return {};
}

void MasterDoor::Link::end_wait(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  --num_coming_;
  coming_bytes_ -= bytes;
}

void MasterDoor::Link::on_run(Run run) {
  const uint64_t bytes = bytes_of(run.feeds);
  if (const Status refused = begin_wait(bytes); !refused.ok()) {
    forget_values(feeds_, run.feeds);
    return send_done(run.step, refused, {}, nullptr);
  }
  auto feeds = std::exchange(run.feeds, {});
  collect_values(feeds_, std::move(feeds),
                 [this, run = std::move(run), bytes](Result<Values> values) {
                   end_wait(bytes);
                   start_run(run, std::move(values));
                 });
}

void MasterDoor::Link::start_run(const Run& run, Result<Values> values) {
  const Status status = guarded("service", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(values.status());
    TAGFLOW_RETURN_IF_ERROR(check_taken());
    TAGFLOW_ASSIGN(auto feeds, in_order(std::move(*values)));
    std::shared_ptr<actors::Trace> trace;
    if (run.trace_words > 0) {
      TAGFLOW_ASSIGN(trace, service_.make_trace(run.trace_words));
    }
    return client_->run(
        run.executable, run.step, std::move(feeds),
        [this, step = run.step, trace](Result<std::vector<Tensor>> answer,
                                       const actors::RunStats& stats) {
          send_done(step, answer, stats, trace.get());
        },
        trace);
  });
  if (!status.ok()) return send_done(run.step, status, {}, nullptr);
  if (service_.has_queue()) door_.wake();
}

void MasterDoor::Link::send_done(uint64_t step,
                                 const Result<std::vector<Tensor>>& answer,
                                 const actors::RunStats& stats,
                                 const actors::Trace* trace) {
  net::Done done;
  const Status sent = guarded("service", [&] {
    return try_send_done(step, answer, stats, trace, done);
  });
  if (sent.ok()) return;
  // Nothing of it is on its way.
  const auto take_back = [this](const auto& value) {
    if (const auto* object = std::get_if<ObjectId>(&value)) on_sent(*object);
  };
  take_back(done.trace);
  for (const net::Done::Fetch& fetch : done.fetches) take_back(fetch.value);
  const Status told = guarded(
      "service", [&] { return try_send_done(step, sent, {}, nullptr, done); });
  // The client waits for it.
  if (!told.ok()) close(told);
}

Status MasterDoor::Link::try_send_done(
    uint64_t step, const Result<std::vector<Tensor>>& answer,
    const actors::RunStats& stats, const actors::Trace* trace,
    net::Done& done) {
  done = {
      .step = step,
      .outcome = outcome_of(answer.status()),
      // Only what the client has told to end is cancelled.
      .is_cause = !answer.ok() && answer.status().code() != Code::kCancelled,
      .stats = numbers_of(stats)};
  ValueSender sender(channel_);
  const auto put = [&](const Tensor& tensor, const std::string& name,
                       auto& value) -> Status {
    TAGFLOW_RETURN_IF_ERROR(sender.put(tensor, name, value));
    if (const auto* object = std::get_if<ObjectId>(&value)) {
      const std::lock_guard lock(mutex_);
      const uint64_t bytes = sender.last_object_bytes();
      unsent_.emplace(*object, bytes);
      unsent_bytes_ += bytes;
    }
    return {};
  };
  if (trace != nullptr)
    if (const auto recorded = tensor_of(trace->others()))
      TAGFLOW_RETURN_IF_ERROR(put(*recorded, "the trace", done.trace));
  if (answer.ok()) TAGFLOW_RETURN_IF_ERROR(check_taken());
  if (answer.ok())
    for (uint32_t i = 0; i < answer->size(); ++i) {
      net::Done::Fetch& fetch = done.fetches.emplace_back();
      fetch.index = i;
      TAGFLOW_RETURN_IF_ERROR(
          put((*answer)[i], fmt::format("fetch {}", i), fetch.value));
    }
  return sender.send(done);
}

// --- The door ---------------------------------------------------------------

Status MasterDoor::Impl::start() {
  TAGFLOW_ASSIGN(Identity identity,
                 make_identity(Role::kMaster, {"master", 0}, options_.cluster,
                               options_.secret, options_.tls));
  thread_ = std::thread([this] { serve(); });
  TAGFLOW_ASSIGN(listener_,
                 Listener::start(
                     *threads_.bulk,
                     {.host = options_.host,
                      .port = options_.port,
                      .only_loopback =
                          !options_.beyond_loopback && options_.tls == nullptr,
                      .has_local_door = options_.has_local_door,
                      .on_refused = [this](const Status& why) { warn(why); }},
                     std::move(identity),
                     [this](const Greeting& peer) { return admit(peer); },
                     [this](Connection connection) {
                       on_connection(std::move(connection));
                     }));
  return {};
}

MasterDoor::Impl::~Impl() {
  listener_.reset();
  std::unique_lock lock(mutex_);
  is_closed_ = true;
  std::vector<std::unique_ptr<Link>> links = std::move(links_);
  changed_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  const Status ended =
      error(Code::kUnavailable, "[service] the master has ended");
  for (const auto& link : links) link->say_bye(ended);
  // If both sides close at the same time, clients may miss the reason.
  constexpr std::chrono::milliseconds kPatience(200);
  lock.lock();
  changed_.wait_for(lock, kPatience, [&] {
    return std::ranges::all_of(
        links, [](const auto& link) { return link->is_over(); });
  });
  lock.unlock();
  for (const auto& link : links) link->close(ended);
  links.clear();
}

size_t MasterDoor::Impl::num_clients() {
  const std::lock_guard lock(mutex_);
  return links_.size();
}

Status MasterDoor::Impl::admit(const Greeting& peer) {
  if (peer.role != Role::kClient)
    return error(Code::kFailedPrecondition, "this is a master service");
  if (peer.purpose == Purpose::kControl)
    return error(Code::kUnimplemented, "a master service is no directory");
  if (num_clients() >= service_.limits().clients)
    return error(Code::kResourceExhausted, "{} clients are here, the limit",
                 service_.limits().clients);
  return {};
}

void MasterDoor::Impl::on_connection(Connection connection) {
  std::unique_lock lock(mutex_);
  auto pair = pairing_.add(std::move(connection));
  if (!pair) return;
  const Status made = guarded("service", [&]() -> Status {
    TAGFLOW_ASSIGN(auto client, service_.admit());
    links_.push_back(std::make_unique<Link>(
        *this, service_, threads_, std::move(*pair), std::move(client)));
    Link& link = *links_.back();
    Status started = guarded("service", [&] { link.start(); });
    if (started.ok()) return {};
    // As for want of a thread: the door destroys it.
    link.give_up();
    is_awake_ = true;
    changed_.notify_all();
    return std::move(started).with_prefix(
        "[service] a client cannot be served: ");
  });
  lock.unlock();
  if (!made.ok()) warn(made);
}

void MasterDoor::Impl::wake() {
  const std::lock_guard lock(mutex_);
  is_awake_ = true;
  changed_.notify_all();
}

void MasterDoor::Impl::serve() {
  std::unique_lock lock(mutex_);
  while (!is_closed_) {
    changed_.wait(lock, [this] { return is_closed_ || is_awake_; });
    is_awake_ = false;
    std::vector<std::unique_ptr<Link>> over;
    for (auto& link : links_)
      if (link->is_over()) over.push_back(std::move(link));
    std::erase(links_, nullptr);
    lock.unlock();
    over.clear();
    const bool has_queue = service_.has_queue();
    if (has_queue) service_.look();
    lock.lock();
    if (!has_queue) continue;
    is_awake_ = true;
    changed_.wait_for(lock, kLook, [this] { return is_closed_; });
  }
}

MasterDoor::MasterDoor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MasterDoor::~MasterDoor() = default;

Result<std::unique_ptr<MasterDoor>> MasterDoor::start(
    MasterService& service, MasterDoorOptions options) {
  return guarded("net", [&]() -> Result<std::unique_ptr<MasterDoor>> {
    if (options.threads == nullptr) {
      TAGFLOW_ASSIGN(IoThreads threads, IoThreads::start());
      options.threads = std::make_shared<IoThreads>(std::move(threads));
    }
    auto impl = std::make_unique<Impl>(service, std::move(options));
    TAGFLOW_RETURN_IF_ERROR(impl->start());
    return std::unique_ptr<MasterDoor>(new MasterDoor(std::move(impl)));
  });
}

uint16_t MasterDoor::port() const { return impl_->port(); }
size_t MasterDoor::num_clients() const { return impl_->num_clients(); }

}  // namespace tagflow::net
