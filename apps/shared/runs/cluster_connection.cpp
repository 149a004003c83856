#include "apps/shared/runs/cluster_connection.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/shared/runs/log.h"
#include "apps/shared/runs/named_cluster.h"
#include "apps/shared/runs/run_figures.h"
#include "devices/device_registry.h"
#include "net/config/cluster_file.h"
#include "net/master/cluster.h"
#include "net/service/remote_master.h"

namespace tagflow::apps {
namespace {

// Enough for a worker to notice that its last master has left.
constexpr std::chrono::seconds kPatience{2};

Status check_switches(const EngineOptions& options) {
  const std::pair<const char*, bool> here[] = {
      {"--devices", !options.devices.empty()},
      {"--workers", options.workers != 0},
      {"--through-wire", options.through_wire},
      {"--file-root", !options.file_root.empty()}};
  for (const auto& [name, is_given] : here)
    if (is_given)
      return invalid_argument(
          "[--cluster] leave out {}: it is for runs in this process", name);
  return {};
}

using Counts = std::map<std::string, int>;  // by keyword of a device type

std::string spec_of(const Counts& counts) {
  std::string spec;
  for (const auto& [keyword, count] : counts)
    spec += fmt::format("{}{}:{}", spec.empty() ? "" : ",", keyword, count);
  return spec;
}

// Warns of each task whose worker has more or fewer devices than the file says.
// It is no error: the worker was told so, and the graph is placed on what it
// has.
Status compare_devices(const std::string& file,
                       const std::vector<net::ClusterFile::Entry>& tasks,
                       std::span<const graph::DeviceInfo> infos) {
  const auto types = devices::DeviceRegistry::global().types();
  for (const net::ClusterFile::Entry& entry : tasks) {
    auto specs = devices::parse_device_specs(entry.devices);
    if (!specs.ok())
      return std::move(specs).status().with_prefix(
          fmt::format("{}: {}: ", file, entry.task.to_string()));
    Counts named, reported;
    for (const devices::DeviceSpec& spec : *specs)
      named[spec.keyword] += spec.count;
    named.emplace("cpu", 1);
    for (const graph::DeviceInfo& info : infos) {
      if (info.name.job != entry.task.job ||
          info.name.task != int(entry.task.index))
        continue;
      const auto type =
          std::ranges::find(types, info.name.type, &devices::DeviceType::type);
      ++reported[type == types.end() ? *info.name.type : type->keyword];
    }
    if (named != reported)
      spdlog::warn("[--cluster] {} has {:?}, and {:?} in \"{}\"",
                   entry.task.to_string(), spec_of(reported), spec_of(named),
                   file);
  }
  return {};
}

Failure read_options(const EngineOptions& options, net::ClusterOptions& found,
                     std::vector<net::ClusterFile::Entry>& tasks) {
  NamedCluster cluster;
  Failure failure = read_named_cluster(options.cluster, options.secret_file,
                                       options.tls, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  for (const auto& [task, address, devices] : cluster.tasks)
    found.members.push_back({task, address});
  tasks = std::move(cluster.tasks);
  if (cluster.any) {
    auto members =
        net::members_of(cluster.access(*cluster.any), found.patience);
    if (!members.ok())
      return run_time_error(
          std::move(members).status().with_prefix("[--cluster] "));
    for (net::CatalogueEntry& member : *members)
      found.members.push_back(
          {std::move(member.task), {std::move(member.host), member.port}});
  }
  found.on_event = [](const net::Event& event) { log_event(event, ""); };
  found.tolerates_torn_state = options.tolerates_torn_state;
  found.name = std::move(cluster.name);
  found.secret = std::move(cluster.secret);
  found.tls = std::move(cluster.tls);
  return {};
}

std::vector<std::string> names_of(const net::ClusterOptions& cluster) {
  std::vector<std::string> names;
  for (const auto& member : cluster.members)
    names.push_back(member.task.to_string());
  return names;
}

struct Connected {
  Failure failure;
  std::vector<net::Task> left_out;
};

Connected connect(net::ClusterOptions found,
                  const std::vector<net::ClusterFile::Entry>& tasks,
                  EngineOptions& options) {
  auto cluster = net::Cluster::connect(std::move(found));
  if (!cluster.ok())
    return {
        run_time_error(std::move(cluster).status().with_prefix("[--cluster] ")),
        {}};
  Connected connected;
  connected.left_out = (*cluster)->left_out();
  if (connected.left_out.empty()) {
    Status compared =
        compare_devices(options.cluster, tasks, (*cluster)->devices());
    if (!compared.ok())
      return {run_time_error(std::move(compared).with_prefix("[--cluster] ")),
              {}};
  }
  if (options.figures != nullptr) options.figures->watch(*cluster);
  options.backend = *std::move(cluster);
  return connected;
}

// Waits until all tasks are there, or as long as the reconnection says. What
// names them is read each time: a new process may have another address.
Failure connect_again(EngineOptions& options) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{100};
  Reconnection& reconnection = *options.reconnection;
  const auto end = Clock::now() + reconnection.wait;
  for (bool is_over = false;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    is_over = left.count() <= 0;
    net::ClusterOptions found;
    found.patience = is_over
                         ? std::chrono::milliseconds(0)
                         : std::min<std::chrono::milliseconds>(left, kPatience);
    found.leaves_out_lost = is_over;
    std::vector<net::ClusterFile::Entry> tasks;
    Failure failure = read_options(options, found, tasks);
    reconnection.lost.clear();
    if (failure.exit_code == ExitCode::kOk) {
      const std::vector<std::string> there = names_of(found);
      for (const std::string& task : reconnection.tasks)
        if (std::ranges::count(there, task) == 0)
          reconnection.lost.push_back(task);
      if (is_over || reconnection.lost.empty()) {
        Connected connected = connect(std::move(found), tasks, options);
        failure = std::move(connected.failure);
        for (const net::Task& task : connected.left_out)
          reconnection.lost.push_back(task.to_string());
        if (failure.exit_code == ExitCode::kOk) break;
      }
    }
    const Code code = failure.status.code();
    if (is_over || (code != Code::kOk && code != Code::kUnavailable &&
                    code != Code::kDeadlineExceeded))
      return failure;
    std::this_thread::sleep_for(kPause);
  }
  if (!reconnection.lost.empty())
    spdlog::warn("[--cluster] {} has not come back: the run goes on without it",
                 fmt::join(reconnection.lost, ", "));
  return {};
}

Failure connect_service(EngineOptions& options) {
  if (options.reconnection != nullptr)
    return usage_error(
        error(Code::kUnimplemented,
              "[--cluster] leave out --restarts: the workers of a master "
              "service are not the client's to wait for"));
  NamedCluster cluster;
  Failure failure = read_named_cluster(options.cluster, options.secret_file,
                                       options.tls, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto service = net::RemoteMaster::connect({.address = *cluster.service,
                                             .name = std::move(cluster.name),
                                             .secret = cluster.secret,
                                             .tls = std::move(cluster.tls),
                                             .patience = kPatience});
  if (!service.ok())
    return run_time_error(
        std::move(service).status().with_prefix("[--cluster] "));
  options.backend = *std::move(service);
  return {};
}

}  // namespace

Failure connect_cluster(EngineOptions& options) {
  if (options.cluster.empty()) return {};
  Status usage = check_switches(options);
  if (!usage.ok()) return usage_error(std::move(usage));
  if (names_service(options.cluster)) return connect_service(options);
  if (options.reconnection != nullptr && !options.reconnection->tasks.empty())
    return connect_again(options);
  net::ClusterOptions found;
  found.patience = kPatience;
  std::vector<net::ClusterFile::Entry> tasks;
  Failure failure = read_options(options, found, tasks);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (options.reconnection != nullptr)
    options.reconnection->tasks = names_of(found);
  // An address has named it; clusters of joined workers begin with task 0.
  if (tasks.empty() && found.members.size() == 1 &&
      found.members[0].task.index > 0)
    spdlog::warn(
        "[--cluster] {} at {} knows no other worker: if a cluster file names "
        "more of them, use the file",
        found.members[0].task.to_string(), options.cluster);
  return connect(std::move(found), tasks, options).failure;
}

Status refuse_watching_cluster(const EngineOptions& options,
                               std::string_view what) {
  if (options.cluster.empty()) return {};
  return error(Code::kUnimplemented,
               "[--cluster] {} is not supported there yet: it sees the nodes "
               "of this process only",
               what);
}

}  // namespace tagflow::apps
