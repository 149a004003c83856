#include "apps/tagflow/cluster_drain.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/worker_arguments.h"

namespace tagflow::apps {
namespace {

struct DrainCommand {
  ClusterArguments arguments;
  std::vector<std::string> tasks;
};

using Place = std::pair<net::Task, net::Address>;

// Where all workers of the cluster listen.
Result<std::vector<Place>> places_of(const NamedCluster& cluster) {
  std::vector<Place> places;
  for (const net::ClusterFile::Entry& entry : cluster.tasks)
    places.emplace_back(entry.task, entry.address);
  if (!cluster.any) return places;
  TAGFLOW_ASSIGN(const auto members,
                 net::members_of(cluster.access(*cluster.any)));
  for (const net::CatalogueEntry& member : members)
    places.emplace_back(member.task, net::Address{member.host, member.port});
  return places;
}

// The named tasks, each once.
Result<std::vector<net::Task>> tasks_of(const DrainCommand& command) {
  std::vector<net::Task> tasks;
  for (const std::string& text : command.tasks) {
    TAGFLOW_ASSIGN(net::Task task, parse_task(text));
    if (std::ranges::find(tasks, task) == tasks.end())
      tasks.push_back(std::move(task));
  }
  return tasks;
}

Failure drain(const DrainCommand& command) {
  const auto tasks = tasks_of(command);
  if (!tasks.ok()) return usage_error(tasks.status());
  NamedCluster cluster;
  const Failure failure = read_cluster_arguments(command.arguments, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto places = places_of(cluster);
  if (!places.ok())
    return run_time_error(Status(places.status()).with_prefix("[--cluster] "));
  std::vector<Place> chosen;
  for (const net::Task& task : *tasks) {
    const auto place = std::ranges::find(*places, task, &Place::first);
    if (place == places->end())
      return usage_error(invalid_argument("[cluster] {:?} has no task {}",
                                          command.arguments.cluster,
                                          task.to_string()));
    chosen.push_back(*place);
  }
  // None of them leaves if one has no place; all at once wait for their steps.
  std::vector<std::future<Status>> asked;
  for (const auto& [task, address] : chosen)
    asked.push_back(std::async(std::launch::async, net::drain_worker,
                               cluster.access(address), task));
  Status first;
  for (size_t i = 0; i < asked.size(); ++i) {
    const std::string name = chosen[i].first.to_string();
    if (Status left = asked[i].get(); left.ok()) {
      print_text(fmt::format("{} has left\n", name));
    } else if (first.ok()) {
      first = std::move(left).with_prefix(fmt::format("{}: ", name));
    } else {
      spdlog::error("{}: {}", name, left.to_string());
    }
    if (Status printed = flush_stdout(); first.ok()) first = std::move(printed);
  }
  return first.ok() ? Failure() : run_time_error(std::move(first));
}

}  // namespace

void add_cluster_drain_command(CLI::App& cluster, ExitCode& exit_code) {
  auto command = std::make_shared<DrainCommand>();
  CLI::App* sub = cluster.add_subcommand(
      "drain", "have workers leave when their steps are over");
  sub->add_option("task", command->tasks, "the workers, as worker/1")
      ->required()
      ->type_name("JOB/N");
  add_cluster_arguments(*sub, command->arguments);
  sub->callback([command, &exit_code] { exit_code = report(drain(*command)); });
}

}  // namespace tagflow::apps
