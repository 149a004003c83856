#include "apps/tagflow/cluster_certs.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/worker_arguments.h"
#include "net/config/certificate_files.h"
#include "net/config/cluster_file.h"

namespace tagflow::apps {
namespace {

struct CertsCommand {
  std::string folder;
  std::string name = net::ClusterFile().name;
  int days = 365;
  std::vector<std::string> tasks;
  bool renews = false;
};

// "JOB/N", "JOB/N=HOST" or "JOB/N=HOST,HOST".
Result<net::CertificateFiles::Process> parse_process(std::string_view text) {
  net::CertificateFiles::Process process;
  const size_t equals = text.find('=');
  auto task = parse_task(text.substr(0, equals));
  if (!task.ok())
    return invalid_argument(
        "[--task] {:?} is not JOB/NUMBER, or JOB/NUMBER=HOST", text);
  process.task = *std::move(task);
  if (equals == text.npos) return process;
  std::string_view rest = text.substr(equals + 1);
  for (size_t comma = 0; comma != rest.npos;) {
    comma = rest.find(',');
    process.hosts.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma == rest.npos ? 0 : comma + 1);
  }
  return process;
}

Failure write_certs(const CertsCommand& command) {
  net::CertificateFiles files{.folder = command.folder,
                              .cluster = command.name,
                              .lasts = std::chrono::hours(24) * command.days,
                              .existing = command.renews
                                              ? net::Existing::kRenew
                                              : net::Existing::kRefuse};
  for (const std::string& text : command.tasks) {
    auto process = parse_process(text);
    if (!process.ok()) return usage_error(std::move(process).status());
    files.processes.push_back(*std::move(process));
  }
  const auto written = net::write_certificates(files);
  if (!written.ok())
    return written.status().code() == Code::kInvalidArgument
               ? usage_error(written.status())
               : file_error(written.status());
  for (const std::filesystem::path& path : *written)
    print_text(fmt::format("{}\n", path.string()));
  if (Status printed = flush_stdout(); !printed.ok())
    return run_time_error(std::move(printed));
  return {};
}

}  // namespace

void add_cluster_certs_command(CLI::App& cluster, ExitCode& exit_code) {
  auto command = std::make_shared<CertsCommand>();
  CLI::App* sub = cluster.add_subcommand(
      "certs", "make an authority, and certificates of a cluster's processes");
  add_output_option(*sub, "--out", command->folder,
                    "the folder for ca.pem, master.pem, JOB-N.pem and their "
                    "keys; what is there is not written over")
      ->required()
      ->type_name("DIR");
  sub->add_option("--name", command->name, "the name of the cluster")
      ->capture_default_str();
  constexpr int kMostDays = 3650;
  sub->add_option("--days", command->days, "how long they are valid")
      ->check(CLI::Range(1, kMostDays))
      ->capture_default_str();
  sub->add_option("--task", command->tasks,
                  "a worker, as worker/0; with hosts, it may be dialled at "
                  "these only, as worker/0=ann.example,10.0.0.7")
      ->required()
      ->type_name("JOB/N[=HOST,...]")
      ->expected(1)
      ->take_all();
  sub->add_flag("--renew", command->renews,
                "use the authority that is there, and write the certificates "
                "anew: processes that run take them");
  sub->callback(
      [command, &exit_code] { exit_code = report(write_certs(*command)); });
}

}  // namespace tagflow::apps
