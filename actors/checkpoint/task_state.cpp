#include "actors/checkpoint/task_state.h"

#include <algorithm>
#include <set>

#include "actors/session/session.h"
#include "devices/state/saved_contents.h"
#include "devices/state/state_kind.h"
#include "devices/state/table.h"
#include "graph/placement/device_info.h"

namespace tagflow::actors {
namespace {

using devices::ResourceKey;
using graph::NodeDef;

constexpr char kSaved[] = "tasks/saved";
constexpr char kNodes[] = "tasks/nodes";
constexpr char kRuns[] = "tasks/runs";
// What the first run fetches of each task.
constexpr size_t kLooks = 5;
// Of a line of _ListState.
constexpr size_t kColumns = 4;

std::string name_of(size_t task, std::string_view what) {
  return fmt::format("task{}/{}", task, what);
}

// One device for each task, of those that run everything.
std::vector<std::string> devices_of_tasks(const Session& session) {
  std::vector<const graph::DeviceInfo*> chosen;
  for (const graph::DeviceInfo& info : session.device_infos()) {
    const auto place = std::ranges::find_if(chosen, [&](const auto* other) {
      return graph::in_one_task(other->name, info.name);
    });
    if (place == chosen.end()) {
      chosen.push_back(&info);
    } else if ((*place)->name.type != "CPU" && info.name.type == "CPU") {
      *place = &info;
    }
  }
  std::vector<std::string> names;
  for (const graph::DeviceInfo* info : chosen)
    names.push_back(info->name.to_string());
  return names;
}

}  // namespace

Result<std::unique_ptr<TaskState>> TaskState::create(Session& session) {
  std::unique_ptr<TaskState> made(new TaskState(session));
  made->devices_ = devices_of_tasks(session);
  std::vector<NodeDef> nodes;
  for (const auto& [name, dtype] : {std::pair(kSaved, DataType::kString),
                                    {kNodes, DataType::kString},
                                    {kRuns, DataType::kInt64}})
    nodes.push_back({name, "Placeholder", {}, "", {{"dtype", dtype}}});
  for (size_t i = 0; i < made->devices_.size(); ++i) {
    const std::string& device = made->devices_[i];
    nodes.push_back({name_of(i, "list"), "_ListState", {}, device, {}});
    nodes.push_back({name_of(i, "counts"), "_RunCounts", {}, device, {}});
    nodes.push_back(
        {name_of(i, "restore"), "_RestoreState", {kSaved}, device, {}});
    nodes.push_back({name_of(i, "restore_counts"),
                     "_RestoreRunCounts",
                     {kNodes, kRuns},
                     device,
                     {}});
  }
  TAGFLOW_RETURN_IF_ERROR(session.extend(nodes));
  return made;
}

std::vector<std::string> TaskState::looks() const {
  std::vector<std::string> looks;
  for (size_t i = 0; i < devices_.size(); ++i)
    looks.insert(looks.end(), {name_of(i, "list:0"), name_of(i, "list:1"),
                               name_of(i, "list:2"), name_of(i, "counts:0"),
                               name_of(i, "counts:1")});
  return looks;
}

Status TaskState::plan(std::span<const Tensor> looked, Snapshot& snapshot,
                       std::vector<std::string>& reads) {
  savings_.clear();
  std::set<ResourceKey> known;
  for (size_t task = 0; task < devices_.size(); ++task) {
    const auto found = looked.subspan(kLooks * task, kLooks);
    const auto keys = found[0].flat<std::string>();
    for (size_t i = 0; i + kColumns <= keys.size(); i += kColumns) {
      const ResourceKey key{keys[i + 1], keys[i], keys[i + 2]};
      known.insert(key);
      if (const std::string& why_not = keys[i + 3]; !why_not.empty()) {
        snapshot.left_out.push_back(
            fmt::format("{}: {}", key.describe(), why_not));
        continue;
      }
      TAGFLOW_ASSIGN(std::string node, node_for(task, key));
      reads.insert(reads.end(), {node + ":0", node + ":1"});
      savings_.push_back({std::move(node), key.describe()});
    }
    // A node that has run on several tasks goes on from the last one.
    const auto nodes = found[3].flat<std::string>();
    const auto runs = found[4].flat<int64_t>();
    for (size_t i = 0; i < std::min(nodes.size(), runs.size()); ++i) {
      int64_t& count = snapshot.run_counts[nodes[i]];
      count = std::max(count, runs[i]);
    }
  }
  // Contents that were restored, and that no resource has got yet, are with all
  // tasks.
  for (size_t task = 0; task < devices_.size(); ++task) {
    std::span<const std::string> texts =
        looked[kLooks * task + 1].flat<std::string>();
    for (const int64_t size : looked[kLooks * task + 2].flat<int64_t>()) {
      const auto saved = texts.first(std::min(size_t(size), texts.size()));
      texts = texts.subspan(saved.size());
      Tensor contents = Tensor::of<std::string>({int64_t(saved.size())}, saved);
      TAGFLOW_ASSIGN(ResourceKey key, devices::packed_key(contents));
      if (known.insert(std::move(key)).second)
        snapshot.contents.push_back(std::move(contents));
    }
  }
  return {};
}

void TaskState::take(std::span<const Tensor> read, Snapshot& snapshot) const {
  for (size_t i = 0; i < savings_.size(); ++i) {
    const std::string& why_not = read[2 * i + 1].scalar_value<std::string>();
    if (why_not.empty()) {
      snapshot.contents.push_back(read[2 * i]);
    } else {
      snapshot.left_out.push_back(
          fmt::format("{}: {}", savings_[i].resource, why_not));
    }
  }
}

Result<std::string> TaskState::node_for(size_t task, const ResourceKey& key) {
  const auto found = nodes_.find({task, key});
  if (found != nodes_.end()) return found->second;
  const std::string handle =
      name_of(task, fmt::format("handle{}", nodes_.size()));
  std::string node = name_of(task, fmt::format("save{}", nodes_.size()));
  const AttrMap attrs{{"kind", key.kind},
                      {"resource_container", key.container},
                      {"resource_name", key.name}};
  const char* const op = key.kind == devices::Table::kKind    ? "_SaveTable"
                         : key.kind == devices::kIteratorKind ? "_SaveObject"
                                                              : "_SaveActor";
  const std::vector<NodeDef> nodes = {
      {handle, "_StateHandle", {}, devices_[task], attrs},
      {node, op, {handle}, devices_[task], attrs}};
  TAGFLOW_RETURN_IF_ERROR(session_.extend(nodes));
  nodes_.emplace(std::pair(task, key), node);
  return node;
}

Status TaskState::restore_contents(const Snapshot& snapshot) {
  std::vector<std::string> targets;
  for (size_t i = 0; i < devices_.size(); ++i)
    targets.push_back(name_of(i, "restore"));
  for (const Tensor& contents : snapshot.contents)
    TAGFLOW_RETURN_IF_ERROR(
        session_.run({{kSaved, contents}}, {}, targets).status());
  return {};
}

Status TaskState::restore_counts(const Snapshot& snapshot) {
  std::vector<std::string> targets, nodes;
  std::vector<int64_t> runs;
  for (size_t i = 0; i < devices_.size(); ++i)
    targets.push_back(name_of(i, "restore_counts"));
  for (const auto& [node, count] : snapshot.run_counts) {
    nodes.push_back(node);
    runs.push_back(count);
  }
  const std::vector<Feed> feeds = {
      {kNodes, Tensor::of<std::string>({int64_t(nodes.size())}, nodes)},
      {kRuns, Tensor::of<int64_t>({int64_t(runs.size())}, runs)}};
  return session_.run(feeds, {}, targets).status();
}

}  // namespace tagflow::actors
