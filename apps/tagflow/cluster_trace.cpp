#include "apps/tagflow/cluster_trace.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/program/trace.h"
#include "apps/tagflow/worker_arguments.h"
#include "graph/counted.h"
#include "net/service/remote_master.h"

namespace tagflow::apps {
namespace {

struct TraceCommand {
  ClusterArguments arguments;
  std::string out;
  int runs = 10;
  double seconds = 10;
};

Failure trace(const TraceCommand& command) {
  if (!names_service(command.arguments.cluster))
    return usage_error(invalid_argument(
        "[--cluster] name a master service, tagflow://HOST:PORT: workers have "
        "runs of their master only, which has --trace for them"));
  NamedCluster cluster;
  const Failure failure = read_any_cluster(command.arguments, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  Status status = io::check_writable(command.out);
  if (!status.ok()) return run_time_error(std::move(status));
  auto service = net::RemoteMaster::connect({.address = *cluster.service,
                                             .name = std::move(cluster.name),
                                             .secret = cluster.secret,
                                             .tls = std::move(cluster.tls)});
  if (!service.ok())
    return run_time_error(
        std::move(service).status().with_prefix("[--cluster] "));
  actors::Trace trace;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(command.seconds);
  const auto recorded = (*service)->watch(trace, command.runs, [end] {
    return std::chrono::steady_clock::now() < end;
  });
  if (!recorded.ok()) return run_time_error(recorded.status());
  if (*recorded == 0)
    return run_time_error(error(Code::kNotFound,
                                "[cluster] no run has begun and ended within "
                                "{} s",
                                command.seconds));
  status = write_trace(trace, command.out);
  if (!status.ok()) return run_time_error(std::move(status));
  print_text(fmt::format("{}: {}\n", command.out, counted(*recorded, "run")));
  status = flush_stdout();
  return status.ok() ? Failure() : run_time_error(std::move(status));
}

}  // namespace

void add_cluster_trace_command(CLI::App& cluster, ExitCode& exit_code) {
  auto command = std::make_shared<TraceCommand>();
  CLI::App* sub = cluster.add_subcommand(
      "trace",
      "record the next runs of the clients of a master service, for Perfetto "
      "or chrome://tracing");
  add_output_option(*sub, "--out", command->out, "the trace to write")
      ->required();
  constexpr int kMostRuns = 100'000;
  sub->add_option("--runs", command->runs, "how many, at most")
      ->check(CLI::Range(1, kMostRuns));
  sub->add_option("--seconds", command->seconds, "for how long, at most")
      ->check(CLI::Range(0.0, 1e6));
  add_cluster_arguments(*sub, command->arguments);
  sub->callback([command, &exit_code] { exit_code = report(trace(*command)); });
}

}  // namespace tagflow::apps
