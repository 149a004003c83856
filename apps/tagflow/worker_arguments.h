// What several commands say of workers on their command lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/program/exit_code.h"
#include "apps/shared/runs/named_cluster.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/shared/runs/tls_options.h"
#include "graph/status.h"
#include "net/wire/messages.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// "worker/1". InvalidArgument for what is not JOB/NUMBER.
Result<net::Task> parse_task(std::string_view text);

// What a command that asks the workers of a cluster is told about it.
struct ClusterArguments {
  std::string cluster;
  std::string secret_file;
  TlsSwitches tls;
  std::vector<std::string> op_libraries;
};

// Declares --cluster, --secret-file, those of TLS and --op-library. `arguments`
// must outlive the parsing.
void add_cluster_arguments(CLI::App& app, ClusterArguments& arguments);
// Loads the op libraries, and reads what --cluster names. Errors of
// load_op_libraries() and read_named_cluster(); a usage error for a master
// service, which is no worker.
Failure read_cluster_arguments(const ClusterArguments& arguments,
                               NamedCluster& cluster);
// The same for what may be a master service, too.
Failure read_any_cluster(const ClusterArguments& arguments,
                         NamedCluster& cluster);

// Why a process of a cluster, "worker", did not start. No peer was lost,
// whatever the code says.
// An address that is refused has the hint at its end.
Failure not_started(std::string_view what, const Status& status,
                    std::string_view hint = {});
// That of a process which listens for others.
std::string_view hint_for_listening(bool is_insecure);

// Starts the pages of --http at that address, if it is not empty: on loopback,
// unless the process is insecure. Failures as those of not_started().
Failure start_pages(const std::string& address, std::string_view what,
                    bool is_insecure, std::unique_ptr<StatusPages>& pages);

// Declares --drain-time: for how long a worker that is to end waits for its
// steps. `seconds`, which has the default, must outlive the parsing.
CLI::Option* add_drain_time_option(CLI::App& app, double& seconds);

// Declares --checkpoints: where a worker may write its shards of checkpoints.
// `folder` must outlive the parsing.
void add_checkpoints_option(CLI::App& app, std::string& folder);

}  // namespace tagflow::apps
