#include "apps/tagflow/worker_arguments.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <utility>

#include "apps/tagflow/model/op_libraries.h"

namespace tagflow::apps {

Result<net::Task> parse_task(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view number =
      slash == text.npos ? std::string_view() : text.substr(slash + 1);
  const char* const end = number.data() + number.size();
  net::Task task;
  const auto [stop, code] = std::from_chars(number.data(), end, task.index);
  if (number.empty() || code != std::errc() || stop != end)
    return invalid_argument("{:?} is not JOB/NUMBER", text);
  task.job = text.substr(0, slash);
  return task;
}

void add_cluster_arguments(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--cluster", arguments.cluster,
                 "the cluster file, or the address of any worker that others "
                 "have joined, or that has joined them")
      ->required()
      ->type_name("FILE|HOST:PORT");
  app.add_option("--secret-file", arguments.secret_file,
                 "the secret of the cluster; default: the file that the "
                 "cluster file names")
      ->type_name("FILE");
  add_tls_options(app, arguments.tls);
  add_op_library_option(app, arguments.op_libraries);
}

Failure read_cluster_arguments(const ClusterArguments& arguments,
                               NamedCluster& cluster) {
  if (names_service(arguments.cluster))
    return usage_error(invalid_argument(
        "[--cluster] \"{}\" is a master service: name its workers, by their "
        "cluster file or HOST:PORT",
        arguments.cluster));
  return read_any_cluster(arguments, cluster);
}

Failure read_any_cluster(const ClusterArguments& arguments,
                         NamedCluster& cluster) {
  Failure failure = load_op_libraries(arguments.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  return read_named_cluster(arguments.cluster, arguments.secret_file,
                            arguments.tls, cluster);
}

Failure not_started(std::string_view what, const Status& status,
                    std::string_view hint) {
  const bool is_usage = status.code() == Code::kInvalidArgument;
  const bool is_refused = status.code() == Code::kPermissionDenied;
  return {is_usage ? ExitCode::kUsage : ExitCode::kRunTimeError,
          error(status.code(), "[{}] {}{}", what, status.message(),
                is_refused ? hint : "")};
}

std::string_view hint_for_listening(bool is_insecure) {
  return is_insecure ? "" : "; certificates or --insecure allow it";
}

Failure start_pages(const std::string& address, std::string_view what,
                    bool is_insecure, std::unique_ptr<StatusPages>& pages) {
  if (address.empty()) return {};
  auto started = StatusPages::start(address, is_insecure);
  if (!started.ok())
    return not_started(
        what, started.status(),
        is_insecure ? ""
                    : "; --insecure allows it, since these pages have no TLS");
  pages = std::move(*started);
  return {};
}

CLI::Option* add_drain_time_option(CLI::App& app, double& seconds) {
  constexpr double kDay = 24 * 60 * 60;
  return app
      .add_option("--drain-time", seconds,
                  "for how long a worker that is to end waits for the steps "
                  "that run; another signal ends it at once")
      ->check(CLI::Range(0.0, kDay))
      ->capture_default_str()
      ->type_name("SECONDS");
}

void add_checkpoints_option(CLI::App& app, std::string& folder) {
  app.add_option(
         "--checkpoints", folder,
         "the folder in and below which masters may have a worker write "
         "its shards of their checkpoints, and read them; default: that of "
         "--file-root, or none")
      ->type_name("DIR");
}

}  // namespace tagflow::apps
