#include "apps/shared/runs/cluster_connection.h"

#include <chrono>
#include <string>
#include <utility>

#include "apps/shared/runs/named_cluster.h"
#include "net/master/cluster.h"

namespace tagflow::apps {
namespace {

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

Failure read_options(const EngineOptions& options, net::ClusterOptions& found) {
  NamedCluster cluster;
  Failure failure = read_named_cluster(options.cluster, options.secret_file,
                                       options.tls, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  for (auto& [task, address, devices] : cluster.tasks)
    found.members.push_back({std::move(task), std::move(address)});
  if (cluster.any) {
    auto members = net::members_of(cluster.access(*cluster.any));
    if (!members.ok())
      return run_time_error(
          std::move(members).status().with_prefix("[--cluster] "));
    for (net::CatalogueEntry& member : *members)
      found.members.push_back(
          {std::move(member.task), {std::move(member.host), member.port}});
  }
  found.name = std::move(cluster.name);
  found.secret = std::move(cluster.secret);
  found.tls = std::move(cluster.tls);
  return {};
}

}  // namespace

Failure connect_cluster(EngineOptions& options) {
  if (options.cluster.empty()) return {};
  // Enough for a worker to notice that its last master has left.
  constexpr std::chrono::seconds kPatience{2};
  Status usage = check_switches(options);
  if (!usage.ok()) return usage_error(std::move(usage));
  net::ClusterOptions found;
  found.patience = kPatience;
  Failure failure = read_options(options, found);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto cluster = net::Cluster::connect(std::move(found));
  if (!cluster.ok())
    return run_time_error(
        std::move(cluster).status().with_prefix("[--cluster] "));
  options.backend = *std::move(cluster);
  return {};
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
