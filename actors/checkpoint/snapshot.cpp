#include "actors/checkpoint/snapshot.h"

#include <algorithm>
#include <utility>

#include "actors/checkpoint/alone_at_border.h"
#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/stored_variables.h"
#include "actors/checkpoint/task_state.h"
#include "actors/checkpoint/worker_shards.h"
#include "actors/runtime/device_set.h"
#include "actors/session/session.h"
#include "actors/shared_state.h"
#include "devices/state/resource_op.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// A variable of the graph, and the prefix of its nodes' names.
struct Entry {
  GraphVariable variable;
  std::string prefix;  // of its nodes

  std::string node(std::string_view name) const {
    return fmt::format("{}/{}", prefix, name);
  }
};

using Entries = std::map<std::string, Entry, std::less<>>;

// The node by which the variable gets a value.
graph::NodeDef assign_node(const Entry& entry, std::string name,
                           const std::string& value) {
  const GraphVariable& variable = entry.variable;
  const std::string source = entry.node("variable");
  if (!variable.is_reference())
    return {std::move(name),
            "AssignVariableOp",
            {source, value},
            "",
            {{"dtype", variable.dtype}}};
  return {std::move(name),
          "Assign",
          {source, value},
          "",
          {{"T", variable.dtype}, {"validate_shape", false}}};
}

// Adds the nodes that check whether a variable is initialized, read it, and
// assign to it.
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
  } else {
    nodes.push_back(
        {entry.node("is_initialized"), "VarIsInitializedOp", {source}, "", {}});
    nodes.push_back({entry.node("read"), "ReadVariableOp", {source}, "", type});
  }
  nodes.push_back(assign_node(entry, entry.node("assign"), value));
}

constexpr std::chrono::milliseconds kPatience(2000);
// Where that was in vain.
constexpr std::chrono::milliseconds kLittlePatience(50);

}  // namespace

struct Snapshots::Parts {
  std::shared_ptr<SharedState> state;
  std::unique_ptr<Session> session;  // its own, with the same state
  std::unique_ptr<TaskState> tasks;
  std::unique_ptr<WorkerShards> shards;  // null: the master writes all
  // How long it waits for steps that move elements.
  std::chrono::milliseconds patience = kPatience;
  Entries entries;
  std::optional<uint64_t> seed;  // of the original session
};

Snapshots::Snapshots(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Snapshots::~Snapshots() = default;

Result<std::unique_ptr<Snapshots>> Snapshots::create(
    const Session& session) try {
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
  options.backend = session.options().backend;
  options.devices = session.options().devices;
  options.soft_placement = session.options().soft_placement;
  options.scatter = session.options().scatter;
  // A frozen form would keep old values, and would be made while all steps
  // wait.
  options.passes = session.options().passes.without(graph::Pass::kFreeze);
  options.on_warning = [](const std::string&) {};
  TAGFLOW_ASSIGN(parts->session, Session::create(std::move(options)));
  std::vector<graph::NodeDef> nodes;
  for (const auto& [name, entry] : parts->entries) add_nodes(entry, nodes);
  TAGFLOW_RETURN_IF_ERROR(parts->session->extend(nodes));
  TAGFLOW_ASSIGN(parts->tasks, TaskState::create(*parts->session));
  return std::unique_ptr<Snapshots>(new Snapshots(std::move(parts)));
} catch (...) {
  return current_fault("snapshot");
}

Status Snapshots::hold_at_workers(const std::string& prefix,
                                  checkpoint::FileSystem& files) try {
  TAGFLOW_ASSIGN(auto shards, WorkerShards::create(*parts_->session));
  TAGFLOW_RETURN_IF_ERROR(shards->try_out(prefix, files));
  parts_->shards = std::move(shards);
  return {};
} catch (...) {
  return current_fault("snapshot");
}

Result<std::vector<checkpoint::ForeignShard>> Snapshots::write_held(
    const Snapshot& snapshot, const std::string& prefix,
    const std::function<const std::string&(const std::string&)>& key_of,
    const checkpoint::WriteOptions& options,
    std::chrono::nanoseconds timeout) try {
  if (snapshot.held.empty()) return std::vector<checkpoint::ForeignShard>();
  return parts_->shards->write(snapshot, prefix, key_of, options, timeout);
} catch (...) {
  return current_fault("snapshot");
}

Result<Snapshot> Snapshots::take(std::chrono::nanoseconds timeout) try {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::string> looks;
  for (const auto& [name, entry] : parts_->entries)
    looks.push_back(entry.node("is_initialized"));
  const std::vector<std::string> of_tasks = parts_->tasks->looks();
  looks.insert(looks.end(), of_tasks.begin(), of_tasks.end());
  SharedState& state = *parts_->state;
  AloneAtBorder alone(state, state.border());
  if (!alone.wait(deadline))
    return error(Code::kDeadlineExceeded,
                 "[snapshot] for {} s there was no moment between steps that "
                 "update variables",
                 std::chrono::duration<double>(timeout).count());
  AloneAtBorder alone_with_elements(state, state.element_border());
  const bool is_alone = alone_with_elements.wait_once(parts_->patience);
  parts_->patience = is_alone ? kPatience : kLittlePatience;
  RunOptions run;
  run.timeout = std::max<std::chrono::nanoseconds>(
      deadline - std::chrono::steady_clock::now(), std::chrono::seconds(1));
  Snapshot snapshot;
  snapshot.seed = parts_->seed.value_or(parts_->state->seed());
  TAGFLOW_ASSIGN(const auto looked, parts_->session->run({}, looks, {}, run));
  std::vector<WorkerShards::Variable> variables;
  const auto homes = parts_->state->resources().homes();
  size_t number = 0;
  for (const auto& [name, entry] : parts_->entries)
    if (looked[number++].scalar_value<bool>()) {
      const auto home = homes.find(devices::resource_key(entry.variable.maker));
      variables.push_back({name, entry.node("read"), entry.variable.dtype,
                           home == homes.end() ? "" : home->second});
    }
  std::vector<std::string> targets;
  std::vector<Feed> feeds;
  if (parts_->shards != nullptr) {
    TAGFLOW_ASSIGN(variables, parts_->shards->plan(std::move(variables),
                                                   snapshot, targets));
    if (!targets.empty()) feeds.push_back(WorkerShards::feed_of(snapshot));
  }
  std::vector<std::string> reads;
  for (const auto& variable : variables) reads.push_back(variable.read);
  TAGFLOW_RETURN_IF_ERROR(
      parts_->tasks->plan(std::span(looked).subspan(number), snapshot, reads));
  TAGFLOW_ASSIGN(auto values, parts_->session->run(feeds, reads, targets, run));
  for (size_t i = 0; i < variables.size(); ++i)
    snapshot.variables.emplace(std::move(variables[i].name),
                               std::move(values[i]));
  // A process that has followed a lost one answers, too, and has nothing.
  if (const auto& backend = parts_->session->options().backend)
    TAGFLOW_RETURN_IF_ERROR(backend->check_state());
  parts_->tasks->take(std::span(values).subspan(variables.size()), snapshot);
  return snapshot;
} catch (...) {
  return current_fault("snapshot");
}

Readers Snapshots::readers() const {
  Readers readers;
  if (parts_->shards == nullptr) return readers;
  const auto homes = parts_->state->resources().homes();
  for (const auto& [name, entry] : parts_->entries) {
    // If nothing has run yet, only the graph says where a variable is.
    const auto home = homes.find(devices::resource_key(entry.variable.maker));
    const auto task = parts_->shards->task_of(
        home == homes.end() ? entry.variable.maker.device : home->second);
    if (task) readers.emplace(name, *task);
  }
  return readers;
}

Status Snapshots::restore(const Snapshot& snapshot,
                          std::vector<std::string>* missing) {
  return restore(snapshot, nullptr, missing, {});
}

Status Snapshots::restore(const Snapshot& snapshot,
                          const StoredVariables& stored,
                          std::chrono::nanoseconds timeout) {
  return restore(snapshot, &stored, nullptr, timeout);
}

Status Snapshots::restore(const Snapshot& snapshot,
                          const StoredVariables* stored,
                          std::vector<std::string>* missing,
                          std::chrono::nanoseconds timeout) try {
  std::vector<std::string> wrong;
  std::vector<Feed> feeds;
  std::vector<std::string> targets;
  for (const auto& [name, value] : snapshot.variables) {
    const auto it = parts_->entries.find(name);
    if (it == parts_->entries.end()) {
      wrong.push_back(fmt::format("\"{}\" ({}) is not a variable of the graph",
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
    return invalid_argument(
        "[snapshot] the snapshot does not fit the graph: {}", list_some(wrong));
  if (missing != nullptr)
    for (const auto& [name, entry] : parts_->entries)
      if (!snapshot.variables.contains(name)) missing->push_back(name);
  // A copy, so that nothing fails after the variables have changed.
  auto run_counts = snapshot.run_counts;
  // First, since nothing has changed if a worker cannot read.
  if (stored != nullptr && !stored->places.empty()) {
    const auto assign = [this](const std::string& name,
                               const std::string& value,
                               const std::string& after) {
      const Entry& entry = parts_->entries.find(name)->second;
      graph::NodeDef node =
          assign_node(entry, fmt::format("{}/{}", after, entry.prefix), value);
      node.inputs.push_back("^" + after);
      return node;
    };
    std::vector<Feed> places;
    TAGFLOW_ASSIGN(const auto assigns,
                   parts_->shards->read(*stored, assign, places));
    RunOptions run;
    run.timeout = timeout;
    TAGFLOW_RETURN_IF_ERROR(
        parts_->session->run(places, {}, assigns, run).status());
  }
  if (!targets.empty())
    TAGFLOW_RETURN_IF_ERROR(parts_->session->run(feeds, {}, targets).status());
  TAGFLOW_RETURN_IF_ERROR(parts_->tasks->restore_contents(snapshot));
  if (snapshot.seed) {
    // Other processes have counts of their own.
    if (parts_->session->options().backend != nullptr)
      TAGFLOW_RETURN_IF_ERROR(parts_->tasks->restore_counts(snapshot));
    parts_->state->set_seed(*snapshot.seed);
    parts_->state->run_counts().restore(std::move(run_counts));
  }
  return {};
} catch (...) {
  return current_fault("snapshot");
}

std::vector<std::string> Snapshots::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : parts_->entries) names.push_back(name);
  return names;
}

}  // namespace tagflow::actors
