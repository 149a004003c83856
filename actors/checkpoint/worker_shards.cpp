#include "actors/checkpoint/worker_shards.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "actors/session/backend.h"
#include "actors/session/session.h"
#include "devices/files/bundle_index.h"
#include "graph/placement/device_info.h"
#include "graph/status_text.h"
#include "graph/temporary_file.h"

namespace tagflow::actors {
namespace {

using checkpoint::ForeignShard;
using graph::NodeDef;

constexpr char kSave[] = "shards/save";
constexpr char kSync[] = "shards/sync";
constexpr char kPrefix[] = "shards/prefix";
constexpr size_t kOutputs = 3;  // of _WriteShard
constexpr std::chrono::seconds kTryOut{60};

std::string name_of(size_t task, std::string_view what) {
  return fmt::format("shards/task{}/{}", task, what);
}

// The process of the device.
graph::DeviceName process_of(graph::DeviceName device) {
  device.type.reset();
  device.id.reset();
  return device;
}

// "/job:worker/task:1".
std::string task_name(graph::DeviceName device) {
  device.replica.reset();
  return process_of(std::move(device)).to_string();
}

int64_t draw_save() {
  std::random_device random;
  const uint64_t bits = (uint64_t(random()) << 32) | random();
  return std::max<int64_t>(1, int64_t(bits >> 1));
}

// As the workers are told it: their working directories are others.
std::string absolute(const std::string& path) {
  std::error_code code;
  const auto whole = std::filesystem::absolute(path, code);
  return code ? path : whole.string();
}

// What a worker says of its shard, checked as far as this process can without
// its file.
Result<std::vector<checkpoint::BundleEntry>> entries_of(
    const Tensor& index, std::span<const std::string> keys,
    std::string_view writer) {
  TAGFLOW_ASSIGN(const std::string bytes, index.item<std::string>());
  TAGFLOW_ASSIGN(
      checkpoint::BundleIndex parsed,
      checkpoint::parse_bundle_index(
          bytes, fmt::format("the index of the shard of {}", writer)));
  std::vector<std::string_view> wanted(keys.begin(), keys.end());
  std::ranges::sort(wanted);
  if (std::ranges::equal(wanted, parsed.entries, {}, {}, [](const auto& entry) {
        return std::string_view(entry.key);
      }))
    return std::move(parsed.entries);
  return error(Code::kDataLoss,
               "[checkpoint] the shard of {} has not the {} tensors that it "
               "was to have",
               writer, keys.size());
}

}  // namespace

Result<std::unique_ptr<WorkerShards>> WorkerShards::create(Session& session) {
  if (session.options().backend == nullptr ||
      session.options().backend->has_local_files())
    return error(Code::kFailedPrecondition,
                 "[saver] there are no workers that could write shards");
  std::unique_ptr<WorkerShards> made(new WorkerShards(session));
  for (const graph::DeviceInfo& info : session.device_infos()) {
    if (info.name.type != "CPU") continue;
    const bool is_new = std::ranges::none_of(made->tasks_, [&](const auto& t) {
      return graph::in_one_task(t.device, info.name);
    });
    if (is_new) made->tasks_.push_back({info.name, task_name(info.name)});
  }
  std::vector<NodeDef> nodes = {
      {kSave, "Placeholder", {}, "", {{"dtype", DataType::kInt64}}},
      {kSync, "Placeholder", {}, "", {{"dtype", DataType::kBool}}}};
  const AttrMap text{{"dtype", DataType::kString}};
  nodes.push_back({kPrefix, "Placeholder", {}, "", text});
  for (size_t i = 0; i < made->tasks_.size(); ++i) {
    const std::string device = made->tasks_[i].device.to_string();
    const std::string path = name_of(i, "path"), keys = name_of(i, "keys");
    nodes.push_back({path, "Placeholder", {}, device, text});
    nodes.push_back({keys, "Placeholder", {}, device, text});
    nodes.push_back({name_of(i, "index"), "Placeholder", {}, device, text});
    nodes.push_back({name_of(i, "write"),
                     "_WriteShard",
                     {kSave, path, keys, kSync},
                     device,
                     {}});
  }
  TAGFLOW_RETURN_IF_ERROR(session.extend(nodes));
  return made;
}

std::optional<size_t> WorkerShards::task_of(const std::string& device) const {
  auto name = graph::DeviceName::parse(device);
  if (!name.ok()) return std::nullopt;
  *name = process_of(*std::move(name));
  std::optional<size_t> only;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!name->matches(tasks_[i].device)) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

Result<std::string> WorkerShards::holder(size_t task,
                                         std::vector<std::string> reads,
                                         std::vector<DataType> dtypes) {
  const auto found = holders_.find(task);
  if (found != holders_.end() && found->second.reads == reads)
    return found->second.node;
  NodeDef node;
  node.name = name_of(task, fmt::format("hold{}", num_holders_));
  node.op = "_HoldShard";
  node.inputs = {kSave};
  node.inputs.insert(node.inputs.end(), reads.begin(), reads.end());
  node.device = tasks_[task].device.to_string();
  node.attrs = {{"T", std::move(dtypes)}};
  std::string name = node.name;
  TAGFLOW_RETURN_IF_ERROR(
      session_.extend(std::vector<NodeDef>{std::move(node)}));
  ++num_holders_;
  holders_.insert_or_assign(task, Holder{name, std::move(reads)});
  return name;
}

Status WorkerShards::try_out(const std::string& prefix,
                             checkpoint::FileSystem& files) {
  for (size_t task = 0; task < tasks_.size(); ++task)
    TAGFLOW_RETURN_IF_ERROR(
        try_task(task, prefix, files)
            .with_prefix(fmt::format("[saver] {} cannot write its shards: ",
                                     tasks_[task].name)));
  return {};
}

Status WorkerShards::try_task(size_t task, const std::string& prefix,
                              checkpoint::FileSystem& files) {
  const int64_t save = draw_save();
  TAGFLOW_ASSIGN(const std::string hold, holder(task, {}, {}));
  TAGFLOW_RETURN_IF_ERROR(
      session_.run({{kSave, Tensor::scalar(save)}}, {}, {hold}).status());
  const Request request{task, {}};
  TAGFLOW_ASSIGN(const auto shards,
                 write_all(save, prefix, {&request, 1},
                           {&files, /*sync=*/false, false}, kTryOut));
  return files.remove(shards[0].path);
}

Result<std::vector<WorkerShards::Variable>> WorkerShards::plan(
    std::vector<Variable> variables, Snapshot& snapshot,
    std::vector<std::string>& targets) {
  snapshot.save = draw_save();
  std::vector<Variable> others;
  std::map<size_t, std::pair<std::vector<std::string>, std::vector<DataType>>>
      of_tasks;
  for (Variable& variable : variables) {
    const auto task = task_of(variable.home);
    if (!task) {
      others.push_back(std::move(variable));
      continue;
    }
    auto& [reads, dtypes] = of_tasks[*task];
    reads.push_back(std::move(variable.read));
    dtypes.push_back(variable.dtype);
    snapshot.held.emplace(std::move(variable.name), *task);
  }
  for (auto& [task, held] : of_tasks) {
    TAGFLOW_ASSIGN(std::string node,
                   holder(task, std::move(held.first), std::move(held.second)));
    targets.push_back(std::move(node));
  }
  return others;
}

std::pair<std::string, Tensor> WorkerShards::feed_of(const Snapshot& snapshot) {
  return {kSave, Tensor::scalar(snapshot.save)};
}

Result<std::vector<ForeignShard>> WorkerShards::write(
    const Snapshot& snapshot, const std::string& prefix, const KeyOf& key_of,
    const checkpoint::WriteOptions& options,
    std::chrono::nanoseconds timeout) const {
  // The variables of each task in the order in which it holds them.
  std::map<size_t, Request> of_tasks;
  for (const auto& [name, task] : snapshot.held) {
    Request& request = of_tasks[task];
    request.task = task;
    request.keys.push_back(key_of(name));
  }
  std::vector<Request> requests;
  for (auto& [task, request] : of_tasks) requests.push_back(std::move(request));
  return write_all(snapshot.save, prefix, requests, options, timeout);
}

Result<std::vector<ForeignShard>> WorkerShards::write_all(
    int64_t save, const std::string& prefix, std::span<const Request> requests,
    const checkpoint::WriteOptions& options,
    std::chrono::nanoseconds timeout) const {
  // Shard 0 is the master's.
  const int num_shards = int(requests.size()) + 1;
  const auto path_of = [&](size_t i) {
    return checkpoint::data_path(prefix, int(i) + 1, num_shards);
  };
  std::vector<Feed> feeds = {{kSave, Tensor::scalar(save)},
                             {kSync, Tensor::scalar(options.sync)}};
  std::vector<std::string> fetches;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& [task, keys] = requests[i];
    feeds.emplace_back(name_of(task, "path"),
                       Tensor::scalar(absolute(path_of(i))));
    feeds.emplace_back(name_of(task, "keys"),
                       Tensor::of<std::string>({int64_t(keys.size())}, keys));
    for (size_t output = 0; output < kOutputs; ++output)
      fetches.push_back(fmt::format("{}:{}", name_of(task, "write"), output));
  }
  checkpoint::FileSystem& files = options.file_system();
  const auto write = [&]() -> Result<std::vector<ForeignShard>> {
    RunOptions run;
    run.timeout = timeout;
    TAGFLOW_ASSIGN(const auto answers, session_.run(feeds, fetches, {}, run));
    std::vector<ForeignShard> shards;
    for (size_t i = 0; i < requests.size(); ++i) {
      const Tensor* const answer = &answers[kOutputs * i];
      ForeignShard shard;
      shard.writer = tasks_[requests[i].task].name;
      shard.path = temporary_name(path_of(i), uint64_t(save));
      shard.shard = int(i) + 1;
      TAGFLOW_ASSIGN(shard.entries,
                     entries_of(answer[0], requests[i].keys, shard.writer));
      TAGFLOW_ASSIGN(const int64_t size, answer[1].item<int64_t>());
      TAGFLOW_ASSIGN(const int64_t checksum, answer[2].item<int64_t>());
      shard.size = uint64_t(size);
      shard.checksum = uint32_t(checksum);
      TAGFLOW_RETURN_IF_ERROR(
          checkpoint::check_shard(shard, uint64_t(save), files));
      shards.push_back(std::move(shard));
    }
    return shards;
  };
  auto shards = write();
  // The others may have written theirs.
  if (!shards.ok())
    for (size_t i = 0; i < requests.size(); ++i)
      static_cast<void>(
          files.remove(temporary_name(path_of(i), uint64_t(save))));
  return shards;
}

Result<std::vector<std::string>> WorkerShards::read(
    const StoredVariables& stored, const Assign& assign,
    std::vector<Feed>& feeds) {
  // What each task reads, in the order of the variables' names.
  struct Part {
    std::vector<std::string> variables, keys;
    std::vector<DataType> dtypes;
    checkpoint::BundleIndex index;
  };
  std::map<size_t, Part> parts;
  Reader reader;
  for (const auto& [variable, place] : stored.places) {
    Part& part = parts[place.task];
    part.variables.push_back(variable);
    part.keys.push_back(place.entry.key);
    part.dtypes.push_back(DataType(place.entry.dtype));
    part.index.entries.push_back(place.entry);
    reader.variables.emplace(variable,
                             std::pair(place.task, place.entry.dtype));
  }
  feeds.emplace_back(kPrefix, Tensor::scalar(absolute(stored.prefix)));
  for (auto& [task, part] : parts) {
    part.index.num_shards = stored.num_shards;
    std::ranges::sort(part.index.entries, {}, &checkpoint::BundleEntry::key);
    TAGFLOW_ASSIGN(const std::string index,
                   checkpoint::format_bundle_index(part.index));
    feeds.emplace_back(name_of(task, "index"), Tensor::scalar(index));
    feeds.emplace_back(
        name_of(task, "keys"),
        Tensor::of<std::string>({int64_t(part.keys.size())}, part.keys));
  }
  if (reader.variables == reader_.variables) return reader_.targets;
  const std::string all = fmt::format("shards/read{}", num_readers_);
  NodeDef when_read{all, "NoOp", {}, "", {}};
  std::vector<NodeDef> nodes;
  for (auto& [task, part] : parts) {
    const std::string read = name_of(task, fmt::format("read{}", num_readers_));
    when_read.inputs.push_back("^" + read);
    for (size_t i = 0; i < part.variables.size(); ++i) {
      nodes.push_back(
          assign(part.variables[i], fmt::format("{}:{}", read, i), all));
      reader.targets.push_back(nodes.back().name);
    }
    nodes.push_back({read,
                     "_ReadShards",
                     {kPrefix, name_of(task, "keys"), name_of(task, "index")},
                     tasks_[task].device.to_string(),
                     {{"T", std::move(part.dtypes)}}});
  }
  nodes.push_back(std::move(when_read));
  TAGFLOW_RETURN_IF_ERROR(session_.extend(nodes));
  ++num_readers_;
  reader_ = std::move(reader);
  return reader_.targets;
}

}  // namespace tagflow::actors
