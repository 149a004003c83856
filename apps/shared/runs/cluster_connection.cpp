#include "apps/shared/runs/cluster_connection.h"

#include <chrono>
#include <string>
#include <utility>

#include "net/config/cluster_file.h"
#include "net/config/secret_file.h"
#include "net/master/cluster.h"

namespace tagflow::apps {
namespace {

Status check_switches(const EngineOptions& options) {
  const std::pair<const char*, bool> here[] = {
      {"--devices", !options.devices.empty()},
      {"--workers", options.workers != 0},
      {"--mailbox-only", options.mailbox_only},
      {"--through-wire", options.through_wire},
      {"--file-root", !options.file_root.empty()}};
  for (const auto& [name, is_given] : here)
    if (is_given)
      return invalid_argument(
          "[--cluster] leave out {}: it is for runs in this process", name);
  return {};
}

Failure read_options(const EngineOptions& options, net::ClusterOptions& found) {
  auto file = net::read_cluster_file(options.cluster);
  if (!file.ok())
    return file_error(std::move(file).status().with_prefix("[--cluster] "));
  if (!options.secret_file.empty()) file->secret_file = options.secret_file;
  if (file->secret_file.empty())
    return usage_error(invalid_argument(
        "[--cluster] \"{}\" names no \"secret_file\": add --secret-file",
        options.cluster));
  auto secret = net::read_secret(file->secret_file);
  if (!secret.ok()) return file_error(std::move(secret).status());
  found.name = file->name;
  found.secret = *std::move(secret);
  for (auto& [task, address, devices] : file->tasks)
    found.members.push_back({std::move(task), std::move(address)});
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
