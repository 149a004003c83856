#include "actors/session/session_state.h"

#include "actors/session/forms.h"
#include "actors/session/session_functions.h"
#include "actors/shared_state.h"
#include "devices/files/host_access.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// The tensor that the name of a feed or fetch refers to.
Result<graph::Endpoint> find_endpoint(const graph::Graph& graph,
                                      const std::string& name) {
  if (name.empty())
    return invalid_argument(
        "[session] the name of a feed or fetch is empty. An Output has no name "
        "if its Scope has an error: check Scope::status()");
  return graph.endpoint(name);
}

SessionOptions with_state(SessionOptions options,
                          const std::shared_ptr<DeviceSet>& devices) {
  if (options.state == nullptr)
    options.state = std::make_shared<SharedState>(devices);
  return options;
}

std::shared_ptr<SessionFunctions> make_functions(
    const SessionOptions& options, const std::shared_ptr<DeviceSet>& devices,
    SessionFunctions::Present library) {
  if (options.backend != nullptr) return nullptr;
  SessionOptions inner = options;
  if (!inner.seed) inner.seed = options.state->seed();
  return std::make_shared<SessionFunctions>(
      std::move(inner), devices,
      std::make_shared<devices::HostAccess>(options.policy, options.print_sink),
      std::move(library));
}

std::shared_ptr<Backend> backend_of(
    const SessionOptions& options, const std::shared_ptr<DeviceSet>& devices,
    const std::shared_ptr<SessionFunctions>& functions) {
  if (functions == nullptr) return options.backend;
  return std::make_shared<LocalBackend>(options.state, devices,
                                        functions->host());
}

}  // namespace

SessionState::SessionState(SessionOptions options,
                           std::shared_ptr<DeviceSet> devices,
                           std::shared_ptr<ServedSession> served)
    : options_(with_state(std::move(options), devices)),
      devices_(std::move(devices)),
      functions_(make_functions(options_, devices_,
                                [this] {
                                  const std::shared_lock lock(graph_mutex_);
                                  return graph_.library();
                                })),
      backend_(backend_of(options_, devices_, functions_)),
      served_(std::move(served)),
      answers_at_once_(backend_->answers_at_once()),
      cache_(size_t(options_.max_signatures)),
      check_({.max_nodes = options_.max_nodes}) {}

SessionState::~SessionState() {
  if (functions_ != nullptr)
    static_cast<void>(functions_->close(std::chrono::nanoseconds(0)));
}

class SessionState::CompileLock {
 public:
  CompileLock(SessionState& session, Turns::Turn turn)
      : session_(session), turn_(std::move(turn)) {
    session.compiling_thread_.store(std::this_thread::get_id());
  }
  CompileLock(CompileLock&&) = default;
  CompileLock& operator=(CompileLock&&) = delete;
  ~CompileLock() {
    if (turn_ != nullptr) session_.compiling_thread_.store({});
  }

 private:
  SessionState& session_;
  Turns::Turn turn_;  // null: it was moved from
};

Result<SessionState::CompileLock> SessionState::lock_compiling(
    graph::Budget* budget) {
  if (compiling_thread_.load() == std::this_thread::get_id())
    return error(Code::kFailedPrecondition,
                 "[session] a kernel, a factory, a shape function or a warning "
                 "called this session while it compiled or extended its graph");
  if (is_closed()) return closed_session();
  graph::begin_stage(budget, "another signature of the session was compiled");
  TAGFLOW_ASSIGN(Turns::Turn turn, compiling_.begin(budget));
  return CompileLock(*this, std::move(turn));
}

Status SessionState::extend(std::span<const graph::NodeDef> nodes,
                            const graph::Graph& functions) {
  TAGFLOW_ASSIGN(const CompileLock no_compiling, lock_compiling());
  TAGFLOW_RETURN_IF_ERROR(options_.policy.check(functions));
  std::unique_lock lock(graph_mutex_);
  graph::FunctionLibrary& library = graph_.library();
  const graph::FunctionLibrary::Mark before = library.mark();
  // An exception, as that without memory, takes them back, too.
  Status status = guarded([&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(library.merge(functions.library()));
    TAGFLOW_RETURN_IF_ERROR(options_.policy.check(nodes, library));
    return graph_.extend(nodes);
  });
  if (!status.ok()) library.take_back(before);
  return status;
}

Status SessionState::extend(const graph::Graph& graph) {
  TAGFLOW_ASSIGN(const CompileLock no_compiling, lock_compiling());
  TAGFLOW_RETURN_IF_ERROR(options_.policy.check(graph));
  std::unique_lock lock(graph_mutex_);
  return graph_.extend(graph);
}

Status SessionState::check_graph(graph::Budget& budget) {
  TAGFLOW_RETURN_IF_ERROR(check_.run(graph_, &budget));
  const std::span<const std::string> warnings = check_.frames().warnings();
  warn_once(warnings.subspan(num_frame_warnings_));
  num_frame_warnings_ = warnings.size();
  return {};
}

Result<std::shared_ptr<const Prepared>> SessionState::prepare(
    const Signature& signature, const RunOptions& options,
    std::optional<Clock::time_point> start) {
  if (auto prepared = cache_.find(SignatureCache::key(signature)))
    return prepared;
  graph::Budget budget(budget_of(options, start.value_or(Clock::now())));
  return or_closed(compile_usual(signature, budget));
}

template <class T>
Result<T> SessionState::or_closed(Result<T> compiled) {
  if (compiled.status().code() == Code::kCancelled && is_closed())
    return closed_session();
  return compiled;
}

// The graph is only read here. Prepared runs do not call this, and an extension
// waits.
Result<std::shared_ptr<const Prepared>> SessionState::compile_usual(
    const Signature& signature, graph::Budget& budget) {
  TAGFLOW_ASSIGN(const CompileLock one_at_a_time, lock_compiling(&budget));
  const std::string key = SignatureCache::key(signature);
  if (auto prepared = cache_.find(key)) return prepared;
  std::shared_lock lock(graph_mutex_);
  TAGFLOW_ASSIGN(auto prepared, compile(signature, {}, nullptr, budget));
  if (served_ != nullptr) {  // it has forms of its own
    cache_.add(key, prepared);
    return std::shared_ptr<const Prepared>(std::move(prepared));
  }
  std::vector<size_t> open_feeds = find_open_feeds(*prepared);
  const bool is_frozen = options_.passes.has(graph::Pass::kFreeze) &&
                         prepared->executable->can_be_frozen();
  if (!open_feeds.empty() || is_frozen)
    prepared->forms =
        std::make_shared<Forms>(signature, std::move(open_feeds), is_frozen);
  cache_.add(key, prepared);
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

Result<Request> SessionState::find_request(const Signature& signature) {
  Request request;
  for (const std::string& name : signature.feeds) {
    TAGFLOW_ASSIGN(auto endpoint, find_endpoint(graph_, name));
    request.feeds.push_back(endpoint);
  }
  for (const std::string& name : signature.fetches) {
    TAGFLOW_ASSIGN(auto endpoint, find_endpoint(graph_, name));
    request.fetches.push_back(endpoint);
  }
  for (const std::string& name : signature.targets) {
    graph::Node* node = graph_.find(name);
    if (node == nullptr) {
      // For the message, which suggests the nearest name.
      TAGFLOW_RETURN_IF_ERROR(find_endpoint(graph_, name).status());
      return error(Code::kNotFound, "[session] no node \"{}\" to run", name);
    }
    request.targets.push_back(node);
  }
  return request;
}

graph::Budget::Options SessionState::budget_of(const RunOptions& options,
                                               Clock::time_point start) {
  return {.timeout =
              options.timeout.count() > 0 ? options.timeout : options_.timeout,
          .start = start,
          .is_cancelled = [this, &options] {
            return is_closed() ||
                   (options.cancel && options.cancel->cancelled());
          }};
}

Result<Distribution> SessionState::distribute(const Request& request,
                                              Purpose purpose,
                                              graph::Budget& budget) {
  TAGFLOW_RETURN_IF_ERROR(check_graph(budget));
  // A try fails if another session has claimed a home meanwhile. Homes are
  // permanent, so there are few such tries.
  constexpr int kMostTries = 100;
  for (int tries = 1;; ++tries) {
    Result<Distribution> distribution = actors::distribute(
        {graph_, check_.frames(), options_, backend_->devices(),
         backend_->kernels(), costs_, &groups(), &budget},
        request, purpose);
    if (distribution.status().code() != Code::kAborted) return distribution;
    if (tries == kMostTries)
      return std::move(distribution)
          .status()
          .with_prefix(fmt::format(
              "[session] while this run was placed, other sessions of this "
              "state placed variables {} times: ",
              kMostTries));
  }
}

const StateGroups& SessionState::groups() {
  if (!groups_ || !groups_->covers(graph_))
    groups_.emplace(graph_, backend_->devices(), backend_->kernels());
  return *groups_;
}

Status SessionState::check_cuts(std::string_view what) const {
  if (served_ == nullptr) return {};
  return error(Code::kUnimplemented,
               "[session] {}: the service of this session places and cuts its "
               "graphs, and does not tell how",
               what);
}

Result<Distribution> SessionState::explain(const Signature& signature) {
  TAGFLOW_RETURN_IF_ERROR(check_cuts("explain"));
  const RunOptions defaults;
  graph::Budget budget(budget_of(defaults, Clock::now()));
  return or_closed([&]() -> Result<Distribution> {
    TAGFLOW_ASSIGN(const CompileLock one_at_a_time, lock_compiling(&budget));
    std::shared_lock lock(graph_mutex_);
    TAGFLOW_ASSIGN(const Request request, find_request(signature));
    return distribute(request, Purpose::kExplanation, budget);
  }());
}

Status SessionState::learn(graph::CostModel costs) {
  TAGFLOW_RETURN_IF_ERROR(check_cuts("learn"));
  TAGFLOW_ASSIGN(const CompileLock no_compiling, lock_compiling());
  costs_ = std::move(costs);
  cache_.clear();
  return {};
}

Result<std::shared_ptr<Prepared>> SessionState::compile(
    const Signature& signature, const Special& special, FrozenVariables* frozen,
    graph::Budget& budget) {
  TAGFLOW_ASSIGN(Request request, find_request(signature));
  if (served_ != nullptr) {
    TAGFLOW_RETURN_IF_ERROR(check_graph(budget));
    TAGFLOW_ASSIGN(Backend::Made made,
                   served_->make(graph_, signature, request, &budget));
    return finish(request, std::move(made));
  }
  request.feed_shapes = special.feed_shapes;
  TAGFLOW_ASSIGN(
      Distribution distribution,
      distribute(request,
                 special.is_frozen ? Purpose::kFrozenRun : Purpose::kRun,
                 budget));
  if (special.is_frozen) {
    const bool is_any =
        distribution.frozen != nullptr && !distribution.frozen->empty();
    if (!is_any && special.feed_shapes.empty())
      return std::shared_ptr<Prepared>();
    if (is_any) *frozen = std::move(*distribution.frozen);
  }
  warn_once(distribution.placement.warnings);
  TAGFLOW_ASSIGN(Backend::Made made,
                 backend_->make(std::move(distribution.partitions),
                                signature.fetches, options_, &budget));
  return finish(request, std::move(made));
}

std::shared_ptr<Prepared> SessionState::finish(const Request& request,
                                               Backend::Made made) {
  warn_once(made.warnings);
  auto prepared = std::make_shared<Prepared>();
  prepared->feeds = request.feeds;
  prepared->executable = std::move(made.executable);
  prepared->updates_state = prepared->executable->updates_state();
  prepared->moves_elements = prepared->executable->moves_elements();
  return prepared;
}

std::vector<size_t> SessionState::find_open_feeds(
    const Prepared& prepared) const {
  std::vector<size_t> open;
  if (!options_.passes.has(graph::Pass::kShapes)) return open;
  for (size_t i = 0; i < prepared.feeds.size(); ++i) {
    const auto& [node, port] = prepared.feeds[i];
    if (!node->output_shape(port).fully_known()) open.push_back(i);
  }
  return open;
}

Result<Form> SessionState::make_form(const Signature& signature,
                                     const Special& special,
                                     const RunOptions& options,
                                     Clock::time_point start) {
  graph::Budget budget(budget_of(options, start));
  TAGFLOW_ASSIGN(const CompileLock one_at_a_time, lock_compiling(&budget));
  std::shared_lock lock(graph_mutex_);
  Form form;
  TAGFLOW_ASSIGN(form.prepared,
                 compile(signature, special, &form.variables, budget));
  return form;
}

void SessionState::warn(const std::string& text) const {
  if (options_.on_warning) {
    options_.on_warning(text);
  } else {
    fmt::print(stderr, "warning: {}\n", text);
  }
}

void SessionState::warn_once(std::span<const std::string> warnings) {
  for (const std::string& warning : warnings)
    if (warned_.insert(warning).second) warn(warning);
}

}  // namespace tagflow::actors
