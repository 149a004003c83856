// tagflow master: a process that runs the sessions of many clients on the
// workers of a cluster.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/end_signals.h"
#include "apps/shared/runs/engine_options.h"
#include "apps/shared/runs/log.h"
#include "apps/shared/runs/named_cluster.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/shared/runs/tls_options.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/worker_arguments.h"
#include "net/master/cluster.h"
#include "net/metrics/link_probe.h"
#include "net/metrics/pages.h"
#include "net/service/master_door.h"

namespace tagflow::apps {
namespace {

struct MasterCommand {
  EngineOptions engine;  // of which a master has some
  std::vector<std::string> op_libraries;
  std::string listen = "localhost:0";
  std::string http;  // empty: nowhere
  net::ServiceLimits limits;
  bool is_insecure = false;
  bool is_quiet = false;
  bool logs_json = false;
};

// What the sessions of all clients have in common.
Result<actors::SessionOptions> session_options(const MasterCommand& command,
                                               EngineOptions connected) {
  actors::SessionOptions session;
  session.backend = std::move(connected.backend);
  session.max_nodes = command.engine.max_nodes;
  // Which files ops use is for the workers to say: none runs here.
  TAGFLOW_ASSIGN(session.policy, to_policy(command.engine));
  session.print_sink = print_to_stderr;
  return session;
}

Failure make_door(const MasterCommand& command,
                  net::MasterDoorOptions& options) {
  NamedCluster cluster;
  Failure failure =
      read_named_cluster(command.engine.cluster, command.engine.secret_file,
                         command.engine.tls, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto address = net::parse_address(command.listen);
  if (!address.ok())
    return usage_error(std::move(address).status().with_prefix("[--listen] "));
  options.cluster = std::move(cluster.name);
  options.secret = std::move(cluster.secret);
  options.tls = std::move(cluster.tls);
  options.host = std::move(address->host);
  options.port = address->port;
  options.beyond_loopback = command.is_insecure;
  options.on_event = [is_quiet = command.is_quiet](const net::Event& event) {
    if (!is_quiet) log_event(event, "[master] ");
  };
  return {};
}

// What the master says of itself while these live.
StatusPages::Sources sources_of(net::MasterService& service,
                                const net::Cluster& cluster) {
  const auto probe = std::make_shared<net::LinkProbe>(*cluster.threads());
  return {.health =
              [&cluster, probe] {
                const auto members = cluster.figures().members;
                const auto ready = std::ranges::count(
                    members, net::ClusterFigures::State::kReady,
                    &net::ClusterFigures::Member::state);
                return StatusPages::Health{
                    probe->check(), fmt::format("workers: {} of {} ready\n",
                                                ready, members.size())};
              },
          .figures =
              [&service, &cluster](net::MetricText& text) {
                net::write_service(text, service.figures());
                net::write_cluster(text, cluster.figures());
              }};
}

Failure serve(const MasterCommand& command) {
  if (names_service(command.engine.cluster))
    return usage_error(invalid_argument(
        "[master] --cluster names its workers, not another master"));
  if (!command.engine.file_root.empty())
    return usage_error(invalid_argument(
        "[master] leave out --file-root: ops use the files of workers"));
  Failure failure = load_op_libraries(command.op_libraries);
  net::MasterDoorOptions options;
  if (failure.exit_code == ExitCode::kOk) failure = make_door(command, options);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (command.is_insecure && options.tls == nullptr)
    spdlog::warn(
        "[--insecure] whoever is on the path to this master can read and "
        "change what is sent");
  const std::string host = options.host;
  std::optional<EndSignals> signals(std::in_place);
  if (command.logs_json)
    if (Status logs = log_as_json("/job:master/task:0"); !logs.ok())
      return run_time_error(std::move(logs));
  std::unique_ptr<StatusPages> pages;
  failure = start_pages(command.http, "master", command.is_insecure, pages);
  if (failure.exit_code != ExitCode::kOk) return failure;
  EngineOptions workers;
  workers.cluster = command.engine.cluster;
  workers.secret_file = command.engine.secret_file;
  workers.tls = command.engine.tls;
  failure = connect_cluster(workers);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto cluster = std::dynamic_pointer_cast<net::Cluster>(workers.backend);
  if (cluster != nullptr) options.threads = cluster->threads();
  auto session = session_options(command, std::move(workers));
  if (!session.ok()) return usage_error(std::move(session).status());
  auto service =
      net::MasterService::create({*std::move(session), command.limits});
  if (!service.ok()) return not_started("master", service.status());
  auto door = net::MasterDoor::start(**service, std::move(options));
  if (!door.ok())
    return not_started("master", door.status(),
                       hint_for_listening(command.is_insecure));
  std::optional<StatusPages::Opened> opened;
  if (pages != nullptr && cluster != nullptr) {
    opened.emplace(*pages, sources_of(**service, *cluster), "the master ends");
    print_text(fmt::format("http: {}\n", pages->address()));
  }
  print_text(
      fmt::format("ready: {}\n", net::format_address({host, (*door)->port()})));
  Status printed = flush_stdout();
  if (!printed.ok()) return run_time_error(std::move(printed));
  signals->take();
  signals.reset();  // another one ends the process at once
  return {};
}

void add_limits(CLI::App& sub, net::ServiceLimits& limits) {
  const auto add = [&](const char* name, auto& limit, const char* help) {
    sub.add_option(name, limit, help)
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
        ->capture_default_str();
  };
  add("--max-clients", limits.clients, "clients at a time");
  add("--max-sessions", limits.sessions, "sessions of a client");
  add("--max-runs", limits.runs, "runs of a client that are not answered");
  add("--max-bytes", limits.bytes,
      "bytes of feeds of these runs, and of graphs that are on their way");
  add("--active-runs", limits.active_runs,
      "runs of all clients that compute at a time, beside a 64th as many of "
      "each client; others wait, and clients take turns");
}

}  // namespace

void add_master_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<MasterCommand>();
  EngineOptions& engine = command->engine;
  CLI::App* sub = app.add_subcommand(
      "master",
      "run the sessions of clients on the workers of a cluster, until a signal "
      "ends it; clients name it by --cluster tagflow://HOST:PORT");
  sub->add_option("--cluster", engine.cluster,
                  "the cluster file, or HOST:PORT of a worker that others have "
                  "joined")
      ->required()
      ->type_name("FILE|HOST:PORT");
  sub->add_option("--listen", command->listen,
                  "where it listens; port 0: one that is free")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  add_http_option(*sub, command->http);
  sub->add_option("--secret-file", engine.secret_file,
                  "the secret of the cluster, which clients need, too: a file "
                  "that only its owner can read")
      ->type_name("FILE");
  add_tls_options(*sub, engine.tls);
  add_limits(*sub, command->limits);
  sub->add_flag("--insecure", command->is_insecure,
                "listen without TLS at other addresses than those of loopback, "
                "too, where whoever is on the path can read and change what is "
                "sent; and have the pages of --http there, which have no TLS");
  sub->add_flag("--quiet", command->is_quiet,
                "do not say when a client has gone, and why");
  add_log_format_option(*sub, command->logs_json);
  add_op_library_option(*sub, command->op_libraries);
  add_policy_options(*sub, engine);
  sub->callback([command, &exit_code] { exit_code = report(serve(*command)); });
}

}  // namespace tagflow::apps
