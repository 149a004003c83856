#include "net/tensorflow/client_session.h"

#include <algorithm>
#include <utility>

#include "graph/fault.h"
#include "graph/file/graph_proto.h"
#include "graph/file/tensor_proto.h"
#include "net/proto/master.pb.h"
#include "net/tensorflow/client_call.h"
#include "net/tensorflow/client_errors.h"
#include "net/tensorflow/rewiring.h"
#include "net/tensorflow/session_config.h"

namespace tagflow::net {
namespace {

// A few bytes of a request can ask for any number of elements.
constexpr int64_t kMostRepeatedBytes = int64_t{1} << 28;

// What bytes_of() says of more.
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

template <class Names>
std::vector<std::string> to_names(const Names& names) {
  return {names.begin(), names.end()};
}

Result<Tensor> read_feed(const tensorflow::TensorProto& proto,
                         std::string_view name, int64_t* left) {
  int64_t repeated = kMostRepeatedBytes;
  auto value = graph::tensor_from_proto(proto, left, &repeated);
  if (value.ok()) return value;
  return std::move(value).status().with_prefix(
      fmt::format("[service] the feed of \"{}\": ", name));
}

Status closed_session() {
  return error(Code::kCancelled, "[service] the session is closed");
}

// Of what the feeds of a request need.
uint64_t bytes_of(const tensorflow::TensorProto& proto) {
  uint64_t elements = 1;
  for (const auto& dim : proto.tensor_shape().dim())
    if (__builtin_mul_overflow(elements, uint64_t(dim.size()), &elements))
      return kMostBytes;
  constexpr uint64_t kLargestElement = 32;  // a string
  return std::max<uint64_t>(
      proto.ByteSizeLong(),
      std::min(elements, kMostBytes / kLargestElement) * kLargestElement);
}

}  // namespace

ClientSession::ClientSession(std::string handle,
                             std::unique_ptr<actors::Session> session,
                             std::shared_ptr<ServiceParts> parts)
    : handle_(std::move(handle)),
      session_(std::move(session)),
      parts_(std::move(parts)),
      last_use_(Clock::now().time_since_epoch().count()),
      container_("_session/" + handle_),
      intake_(*session_, container_) {}

Result<std::shared_ptr<ClientSession>> ClientSession::open(
    std::string handle, actors::SessionOptions options,
    std::shared_ptr<ServiceParts> parts) {
  TAGFLOW_ASSIGN(auto session, actors::Session::create(std::move(options)));
  return std::shared_ptr<ClientSession>(new ClientSession(
      std::move(handle), std::move(session), std::move(parts)));
}

std::optional<ClientSession::Clock::time_point> ClientSession::idle_since()
    const {
  if (open_calls_ > 0) return std::nullopt;
  return Clock::time_point(Clock::duration(last_use_.load()));
}

void ClientSession::close() {
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs;
  std::map<int64_t, ReadyToRun> callables;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    partial_runs.swap(partial_runs_);
    callables.swap(callables_);
  }
  const EndTime by = longest_end();
  for (const auto& [name, run] : partial_runs) run->close(by);
  // Callables of graphs of their own have sessions of their own.
  for (const auto& [number, callable] : callables)
    if (callable->own != nullptr)
      static_cast<void>(callable->own->close(time_left(by)));
  end_session(*session_, container_, by);
  drop_old_traces();
  const std::lock_guard lock(mutex_);
  for (auto& [trace, prepared] : early_traces_)
    parts_->traces.keep(std::move(trace));
  early_traces_.clear();
}

void ClientSession::keep_trace(std::shared_ptr<actors::Trace> trace,
                               ReadyToRun prepared) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return parts_->traces.keep(std::move(trace));
  early_traces_.emplace_back(std::move(trace), std::move(prepared));
}

void ClientSession::drop_old_traces() {
  const auto is_idle = [](const actors::Session& session) {
    const actors::SessionCounters counts = session.counters();
    return counts.active + counts.waiting + counts.queued == 0;
  };
  std::vector<EarlyTrace> old;
  const std::lock_guard lock(mutex_);
  if (early_traces_.empty()) return;
  const bool is_own_idle = is_idle(*session_);
  const auto is_kept = [&](const EarlyTrace& at) {
    const auto& own = at.second->own;
    return own == nullptr ? !is_own_idle : !is_idle(*own);
  };
  // Clang 14 cannot compile std::ranges::partition.
  const auto dropped =
      std::partition(early_traces_.begin(), early_traces_.end(), is_kept);
  // Destroyed without the lock.
  old.assign(std::move_iterator(dropped),
             std::move_iterator(early_traces_.end()));
  early_traces_.erase(dropped, early_traces_.end());
}

// --- The graph --------------------------------------------------------------

Result<int64_t> ClientSession::extend(const tensorflow::GraphDef& graph,
                                      std::optional<int64_t> version) {
  return guarded("service", [&]() -> Result<int64_t> {
    const std::lock_guard lock(extending_);
    if (version && *version != version_)
      return error(Code::kAborted,
                   "[service] the graph has version {}, but its client expects "
                   "{}",
                   version_, *version);
    const uint64_t bytes = graph.ByteSizeLong();
    TAGFLOW_ASSIGN(auto share, parts_->bytes.take(bytes));
    uint64_t constants = 0;
    TAGFLOW_RETURN_IF_ERROR(for_client(intake_.add(graph, &constants)));
    graph_shares_.push_back(std::move(share));
    // They are here already: a later request finds too little room.
    graph_shares_.push_back(parts_->bytes.take_anyway(constants));
    // Copies of the graph share its constants.
    graph_bytes_ += bytes;
    last_use_ = Clock::now().time_since_epoch().count();
    if (version) ++version_;
    return version_;
  });
}

Result<graph::Graph> ClientSession::copy_graph(ByteCount::Share& share) {
  const std::lock_guard lock(extending_);
  // The session that gets the copy has one, too.
  TAGFLOW_ASSIGN(share, parts_->bytes.take(2 * graph_bytes_));
  return session_->graph().clone();
}

Status ClientSession::explain(Status status, const Signature& signature) {
  if (status.code() != Code::kNotFound) return status;
  const std::lock_guard lock(extending_);
  for (const auto* names :
       {&signature.feeds, &signature.fetches, &signature.targets})
    for (const std::string& name : *names)
      if (Status reason = intake_.reason(name); !reason.ok()) return reason;
  return status;
}

// --- Runs -------------------------------------------------------------------

Result<std::shared_ptr<ClientSession::Call>> ClientSession::begin(
    uint64_t bytes, const actors::CancelToken& token, const Done& done) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return closed_session();
  }
  TAGFLOW_ASSIGN(auto share, parts_->bytes.take(bytes));
  return Call::begin(shared_from_this(), std::move(share), token, done);
}

Status ClientSession::or_closed(Status status) const {
  if (status.code() != Code::kFailedPrecondition) return status;
  const std::lock_guard lock(mutex_);
  return is_closed_ ? closed_session() : status;
}

ClientSession::ReadyToRun ClientSession::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = prepared_.find(key);
  return found == prepared_.end() ? nullptr : found->second;
}

Result<ClientSession::ReadyToRun> ClientSession::prepare(
    const Signature& signature, const actors::RunOptions& options) {
  auto prepared = std::make_shared<Prepared>();
  auto callable = session_->make_callable(signature.feeds, signature.fetches,
                                          signature.targets, options);
  if (!callable.ok()) return or_closed(explain(callable.status(), signature));
  prepared->callable = *std::move(callable);
  prepared->fetches = signature.fetches;
  return ReadyToRun(std::move(prepared));
}

Status ClientSession::launch(const std::shared_ptr<Call>& call,
                             Signature signature) {
  std::string key = signature.key();
  const ReadyToRun prepared = find(key);
  if (prepared != nullptr && !call->options.output_partition_graphs()) {
    TAGFLOW_RETURN_IF_ERROR(call->record());
    return start(call, prepared);
  }
  return parts_->clerks->post([this, call, key = std::move(key),
                               signature = std::move(signature)] {
    Status status = guarded(
        "service", [&] { return prepare_and_start(*call, signature, key); });
    if (!status.ok()) call->finish(status);
  });
}

Status ClientSession::start(const std::shared_ptr<Call>& call,
                            const ReadyToRun& prepared) {
  if (prepared->is_due_for_a_look() && parts_->clerks->has_idle())
    return parts_->clerks->post([call, prepared] {
      Status status = guarded("service", [&] { call->start(prepared); });
      if (!status.ok()) call->finish(status);
    });
  // This thread is a door's: it compiles no form of the signature.
  const actors::Engine::Lent lent(actors::Engine::Lender::kDone);
  call->start(prepared);
  return {};
}

Status ClientSession::prepare_and_start(Call& call, const Signature& signature,
                                        const std::string& key) {
  ReadyToRun prepared = find(key);
  if (prepared == nullptr) {
    TAGFLOW_ASSIGN(prepared, prepare(signature, call.run_options()));
    const std::lock_guard lock(mutex_);
    // They are in the session's own cache, too, so little is lost.
    if (prepared_.size() >= parts_->limits.signatures) prepared_.clear();
    prepared_.emplace(key, prepared);
  }
  if (call.options.output_partition_graphs()) {
    TAGFLOW_ASSIGN(const auto distribution,
                   session_->explain(signature.feeds, signature.fetches,
                                     signature.targets));
    TAGFLOW_RETURN_IF_ERROR(write_partitions(distribution, *call.metadata()));
  }
  TAGFLOW_RETURN_IF_ERROR(call.record());
  call.start(std::move(prepared));
  return {};
}

void ClientSession::run(const tensorflow::RunStepRequest& request,
                        tensorflow::RunStepResponse& response,
                        const actors::CancelToken& token, Done done) {
  std::shared_ptr<Call> call;
  Status status = guarded("service", [&]() -> Status {
    uint64_t bytes = 0;
    for (const auto& feed : request.feed())
      bytes = std::min(bytes + bytes_of(feed.tensor()), kMostBytes);
    TAGFLOW_ASSIGN(call, begin(bytes, token, done));
    call->options = request.options();
    call->step = &response;
    for (std::string& text : ignored_options(call->options))
      parts_->warn_once("RunOptions: " + text);
    int64_t left = int64_t(bytes);
    PartialRun::Feeds feeds;
    for (const auto& feed : request.feed()) {
      TAGFLOW_ASSIGN(Tensor value,
                     read_feed(feed.tensor(), feed.name(), &left));
      feeds.emplace_back(feed.name(), std::move(value));
    }
    if (!request.partial_run_handle().empty())
      return launch_step(call, request, std::move(feeds));
    Signature signature{
        {}, to_names(request.fetch()), to_names(request.target())};
    for (auto& [name, value] : feeds) {
      signature.feeds.push_back(std::move(name));
      call->feeds.push_back(std::move(value));
    }
    return launch(call, std::move(signature));
  });
  if (status.ok()) return;
  if (call != nullptr) return call->finish(status);
  done(for_client(status));
}

// --- Callables --------------------------------------------------------------

Result<ClientSession::ReadyToRun> ClientSession::prepare_connected(
    const tensorflow::CallableOptions& options, const Signature& signature) {
  auto prepared = std::make_shared<Prepared>();
  TAGFLOW_ASSIGN(graph::Graph graph, copy_graph(prepared->graph_copy));
  for (const auto& connection : options.tensor_connection()) {
    TAGFLOW_ASSIGN(const auto from, graph.endpoint(connection.from_tensor()));
    TAGFLOW_ASSIGN(const auto to, graph.endpoint(connection.to_tensor()));
    TAGFLOW_RETURN_IF_ERROR(replace_readers(graph, to, from));
  }
  TAGFLOW_ASSIGN(prepared->own, actors::Session::create(twin_options()));
  TAGFLOW_RETURN_IF_ERROR(prepared->own->extend(graph));
  TAGFLOW_ASSIGN(prepared->callable,
                 prepared->own->make_callable(
                     signature.feeds, signature.fetches, signature.targets));
  prepared->fetches = signature.fetches;
  return ReadyToRun(std::move(prepared));
}

actors::SessionOptions ClientSession::twin_options() const {
  actors::SessionOptions options = session_->options();
  options.state = session_->shared_state();
  return options;
}

std::string ClientSession::home() const {
  for (const graph::DeviceInfo& info : session_->device_infos())
    if (info.host_memory) return info.name.to_string();
  return {};
}

Result<int64_t> ClientSession::make_callable(
    const tensorflow::CallableOptions& options,
    const actors::CancelToken& token) {
  auto made = guarded("service", [&]() -> Result<int64_t> {
    TAGFLOW_ASSIGN(const auto call, begin(0, token, {}));
    const Signature signature{to_names(options.feed()),
                              to_names(options.fetch()),
                              to_names(options.target())};
    ReadyToRun prepared;
    if (options.tensor_connection().empty()) {
      TAGFLOW_ASSIGN(prepared, prepare(signature, {.cancel = token}));
    } else {
      TAGFLOW_ASSIGN(prepared, prepare_connected(options, signature));
    }
    prepared->options = options.run_options();
    const std::lock_guard lock(mutex_);
    if (callables_.size() >= parts_->limits.callables)
      return error(Code::kResourceExhausted,
                   "[service] the session has {} callables, the limit",
                   callables_.size());
    callables_.emplace(++last_callable_, std::move(prepared));
    return last_callable_;
  });
  if (!made.ok()) return for_client(made.status());
  return made;
}

void ClientSession::run_callable(const tensorflow::RunCallableRequest& request,
                                 tensorflow::RunCallableResponse& response,
                                 const actors::CancelToken& token, Done done) {
  std::shared_ptr<Call> call;
  Status status = guarded("service", [&]() -> Status {
    ReadyToRun prepared;
    {
      const std::lock_guard lock(mutex_);
      const auto found = callables_.find(request.handle());
      if (found == callables_.end())
        return invalid_argument("[service] there is no callable {}",
                                request.handle());
      prepared = found->second;
    }
    uint64_t bytes = 0;
    for (const auto& feed : request.feed())
      bytes = std::min(bytes + bytes_of(feed), kMostBytes);
    TAGFLOW_ASSIGN(call, begin(bytes, token, done));
    call->options = prepared->options;
    call->callable = &response;
    int64_t left = int64_t(bytes);
    for (const auto& feed : request.feed()) {
      const std::string name = fmt::format(
          "callable {}, number {}", request.handle(), call->feeds.size());
      TAGFLOW_ASSIGN(Tensor value, read_feed(feed, name, &left));
      call->feeds.push_back(std::move(value));
    }
    TAGFLOW_RETURN_IF_ERROR(call->record());
    return start(call, std::move(prepared));
  });
  if (status.ok()) return;
  if (call != nullptr) return call->finish(status);
  done(for_client(status));
}

void ClientSession::release_callable(int64_t callable) {
  ReadyToRun released;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = callables_.find(callable);
  if (found == callables_.end()) return;
  released = std::move(found->second);
  callables_.erase(found);
}

// --- Partial runs -----------------------------------------------------------

Result<std::string> ClientSession::set_up(
    const tensorflow::PartialRunSetupRequest& request) {
  auto made = guarded("service", [&]() -> Result<std::string> {
    PartialRun::Setup setup{{},
                            to_names(request.feed()),
                            to_names(request.fetch()),
                            to_names(request.target())};
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) return closed_session();
      if (partial_runs_.size() >= parts_->limits.partial_runs)
        return error(Code::kResourceExhausted,
                     "[service] the session has {} partial runs, the limit",
                     partial_runs_.size());
      setup.name =
          fmt::format("_partial_run/{}/{}", handle_, ++last_partial_run_);
    }
    const auto share = std::make_shared<ByteCount::Share>();
    TAGFLOW_ASSIGN(graph::Graph graph, copy_graph(*share));
    // It keeps the share.
    const auto on_over = [weak = weak_from_this(), name = setup.name, share] {
      if (const auto self = weak.lock()) self->retire(name);
    };
    TAGFLOW_ASSIGN(
        const auto run,
        PartialRun::start(std::move(graph), twin_options(), setup, on_over));
    bool is_closed = false;
    {
      const std::lock_guard lock(mutex_);
      is_closed = is_closed_;
      if (!is_closed) partial_runs_.emplace(setup.name, run);
    }
    if (is_closed) {
      run->close();
      return closed_session();
    }
    retire(setup.name);  // it may be over
    return setup.name;
  });
  if (!made.ok()) return for_client(made.status());
  return made;
}

Status ClientSession::launch_step(const std::shared_ptr<Call>& call,
                                  const tensorflow::RunStepRequest& request,
                                  PartialRun::Feeds feeds) {
  const std::string& name = request.partial_run_handle();
  std::shared_ptr<PartialRun> run;
  {
    const std::lock_guard lock(mutex_);
    const auto found = partial_runs_.find(name);
    if (found == partial_runs_.end())
      return invalid_argument(
          "[service] there is no partial run \"{}\": it is over, or must be "
          "set up before",
          name);
    run = found->second;
  }
  return parts_->clerks->post([this, call, run, name, feeds = std::move(feeds),
                               fetches = to_names(request.fetch())]() mutable {
    const auto timeout = call->run_options().timeout;
    Status status = guarded("service", [&] {
      run->step(std::move(feeds), fetches, timeout, call->token,
                [this, call, name, fetches](auto answer) {
                  retire(name);
                  call->answer(fetches, std::move(answer));
                });
    });
    if (!status.ok()) call->finish(status);
  });
}

void ClientSession::retire(const std::string& partial_run) {
  std::shared_ptr<PartialRun> run;
  {
    const std::lock_guard lock(mutex_);
    const auto found = partial_runs_.find(partial_run);
    if (found == partial_runs_.end() || !found->second->is_over()) return;
    run = std::move(found->second);
    partial_runs_.erase(found);
  }
  // It waits, and this may be a thread of the engine. If no clerk is left, the
  // queues stay as long as the service's state.
  static_cast<void>(parts_->clerks->post_anyway([run] { run->close(); }));
}

}  // namespace tagflow::net
