#include "actors/snapshot.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/graph_variables.h"
#include "actors/session.h"
#include "actors/shared_state.h"

namespace tagflow::actors {
namespace {

// A variable of the graph, and what the nodes that serve it are named.
struct Entry {
  GraphVariable variable;
  std::string prefix;  // of its nodes

  std::string node(std::string_view name) const {
    return fmt::format("{}/{}", prefix, name);
  }
};

using Entries = std::map<std::string, Entry, std::less<>>;

// The nodes that look at a variable, read it, and assign to it.
void add_nodes(const Entry& entry, std::vector<graph::NodeDef>& nodes) {
  graph::NodeDef maker = entry.variable.maker;
  maker.name = entry.node("variable");
  const AttrMap type{{"dtype", entry.variable.dtype}};
  const AttrMap t{{"T", entry.variable.dtype}};
  const std::string source = maker.name;
  const std::string value = entry.node("value");
  nodes.push_back(std::move(maker));
  nodes.push_back({value, "Placeholder", {}, "", type});
  if (entry.variable.is_reference()) {
    nodes.push_back({entry.node("is_initialized"),
                     "IsVariableInitialized",
                     {source},
                     "",
                     type});
    nodes.push_back({entry.node("read"), "Identity", {source}, "", t});
    AttrMap attrs = t;
    attrs.insert_or_assign("validate_shape", false);
    nodes.push_back(
        {entry.node("assign"), "Assign", {source, value}, "", attrs});
  } else {
    nodes.push_back(
        {entry.node("is_initialized"), "VarIsInitializedOp", {source}, "", {}});
    nodes.push_back({entry.node("read"), "ReadVariableOp", {source}, "", type});
    nodes.push_back(
        {entry.node("assign"), "AssignVariableOp", {source, value}, "", type});
  }
}

// The border, alone.
class AloneAtBorder {
 public:
  explicit AloneAtBorder(devices::StateLock& border) : border_(border) {}
  ~AloneAtBorder() {
    if (has_it_) border_.unlock(devices::StateLock::Mode::kExclusive);
  }
  AloneAtBorder(const AloneAtBorder&) = delete;
  AloneAtBorder& operator=(const AloneAtBorder&) = delete;

  // Whether it was got in time.
  bool wait(std::chrono::steady_clock::time_point deadline) {
    using std::chrono::milliseconds;
    milliseconds patience(100);
    while (std::chrono::steady_clock::now() < deadline) {
      has_it_ = try_for(patience);
      if (has_it_) return true;
      // Those that wait behind may be what is waited for.
      std::this_thread::sleep_for(milliseconds(10));
      patience = std::min(2 * patience, milliseconds(2000));
    }
    return false;
  }

 private:
  class Waiter final : public devices::StateLock::Waiter {
   public:
    void on_granted() override {
      std::lock_guard lock(mutex_);
      granted_ = true;
      changed_.notify_all();
    }
    bool wait_for(std::chrono::milliseconds time) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, time, [this] { return granted_; });
      // Who grants it claims it before.
      if (granted_ || claim()) return granted_;
      changed_.wait(lock, [this] { return granted_; });
      return true;
    }

   protected:
    void on_cancel() override {}

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool granted_ = false;
  };

  bool try_for(std::chrono::milliseconds time) {
    const auto waiter = std::make_shared<Waiter>();
    border_.wait(devices::StateLock::Mode::kExclusive, waiter);
    if (waiter->wait_for(time)) return true;
    border_.pass_over();
    return false;
  }

  devices::StateLock& border_;
  bool has_it_ = false;
};

}  // namespace

struct Snapshots::Parts {
  std::shared_ptr<SharedState> state;
  std::unique_ptr<Session> session;  // one of its own, over the same state
  Entries entries;
  std::optional<uint64_t> seed;  // of the session that it is of
};

Snapshots::Snapshots(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Snapshots::~Snapshots() = default;

Result<std::unique_ptr<Snapshots>> Snapshots::create(const Session& session) {
  auto parts = std::make_unique<Parts>();
  parts->state = session.shared_state();
  TAGFLOW_ASSIGN(std::vector<GraphVariable> variables,
                 find_variables(session.graph()));
  for (GraphVariable& variable : variables) {
    std::string name = variable.name;
    const size_t number = parts->entries.size();
    parts->entries.emplace(std::move(name), Entry{std::move(variable),
                                                  fmt::format("v{}", number)});
  }
  parts->seed = session.options().seed;
  SessionOptions options;
  options.state = parts->state;
  options.engine = parts->state->device_set()->shared_engine();
  options.devices = session.options().devices;
  options.soft_placement = session.options().soft_placement;
  options.scatter = session.options().scatter;
  // A form that is frozen would keep old values, and be made while all wait.
  options.passes = session.options().passes.without(graph::Pass::kFreeze);
  options.on_warning = [](const std::string&) {};
  TAGFLOW_ASSIGN(parts->session, Session::create(std::move(options)));
  std::vector<graph::NodeDef> nodes;
  for (const auto& [name, entry] : parts->entries) add_nodes(entry, nodes);
  TAGFLOW_RETURN_IF_ERROR(parts->session->extend(nodes));
  return std::unique_ptr<Snapshots>(new Snapshots(std::move(parts)));
}

Result<Snapshot> Snapshots::take(std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::string> looks;
  for (const auto& [name, entry] : parts_->entries)
    looks.push_back(entry.node("is_initialized"));
  AloneAtBorder alone(parts_->state->border());
  if (!alone.wait(deadline))
    return error(Code::kDeadlineExceeded,
                 "[snapshot] in {} s there was no moment at which no step that "
                 "updates variables was halfway through",
                 std::chrono::duration<double>(timeout).count());
  RunOptions run;
  run.timeout = std::max<std::chrono::nanoseconds>(
      deadline - std::chrono::steady_clock::now(), std::chrono::seconds(1));
  Snapshot snapshot;
  snapshot.seed = parts_->seed.value_or(parts_->state->seed());
  snapshot.run_counts = parts_->state->run_counts().all();
  TAGFLOW_ASSIGN(const auto initialized,
                 parts_->session->run({}, looks, {}, run));
  std::vector<std::string> names, reads;
  size_t number = 0;
  for (const auto& [name, entry] : parts_->entries)
    if (initialized[number++].scalar_value<bool>()) {
      names.push_back(name);
      reads.push_back(entry.node("read"));
    }
  TAGFLOW_ASSIGN(auto values, parts_->session->run({}, reads, {}, run));
  for (size_t i = 0; i < names.size(); ++i)
    snapshot.variables.emplace(std::move(names[i]), std::move(values[i]));
  return snapshot;
}

Status Snapshots::restore(const Snapshot& snapshot,
                          std::vector<std::string>* missing) {
  std::vector<std::string> wrong;
  std::vector<Feed> feeds;
  std::vector<std::string> targets;
  for (const auto& [name, value] : snapshot.variables) {
    const auto it = parts_->entries.find(name);
    if (it == parts_->entries.end()) {
      wrong.push_back(fmt::format("\"{}\" ({}) is no variable of the graph",
                                  name, value.describe()));
    } else if (const GraphVariable& variable = it->second.variable;
               variable.dtype != value.dtype() ||
               !variable.shape.accepts(value.shape())) {
      wrong.push_back(fmt::format("\"{}\" is {}, but the graph has {}{}", name,
                                  value.describe(), dtype_name(variable.dtype),
                                  variable.shape.to_string()));
    } else {
      feeds.emplace_back(it->second.node("value"), value);
      targets.push_back(it->second.node("assign"));
    }
  }
  if (!wrong.empty())
    return invalid_argument("[snapshot] it is of another graph: {}",
                            list_some(wrong));
  if (missing != nullptr)
    for (const auto& [name, entry] : parts_->entries)
      if (!snapshot.variables.contains(name)) missing->push_back(name);
  if (!targets.empty())
    TAGFLOW_RETURN_IF_ERROR(parts_->session->run(feeds, {}, targets).status());
  if (snapshot.seed) {
    parts_->state->set_seed(*snapshot.seed);
    parts_->state->run_counts().restore(snapshot.run_counts);
  }
  return {};
}

std::vector<std::string> Snapshots::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : parts_->entries) names.push_back(name);
  return names;
}

}  // namespace tagflow::actors
