#include "apps/tagflow/cluster_status.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/worker_arguments.h"
#include "devices/memory_stats.h"
#include "graph/counted.h"

namespace tagflow::apps {
namespace {

struct StatusCommand {
  ClusterArguments arguments;
  bool is_json = false;
};

using Members = std::vector<net::MemberStatus>;

// What the directory at the address knows, or why nothing.
Result<Members> ask(const NamedCluster& cluster) {
  if (cluster.any) return net::status_of(cluster.access(*cluster.any));
  // The workers of a file may have joined each other, or not. So the first one
  // may know all; if it does not, a few are asked at a time, since each that is
  // not there takes a time-out.
  constexpr size_t kMostAtOnce = 32;
  using Entry = net::ClusterFile::Entry;
  Members all;
  const auto is_known = [&all](const net::Task& task) {
    return std::ranges::find(all, task, [](const net::MemberStatus& member) {
             return member.member.task;
           }) != all.end();
  };
  size_t next = 0;
  for (size_t at_once = 1; next < cluster.tasks.size(); at_once = kMostAtOnce) {
    std::vector<std::pair<const Entry*, std::future<Result<Members>>>> asked;
    for (; next < cluster.tasks.size() && asked.size() < at_once; ++next) {
      const Entry& entry = cluster.tasks[next];
      if (is_known(entry.task)) continue;
      asked.emplace_back(&entry, std::async(std::launch::async, net::status_of,
                                            cluster.access(entry.address)));
    }
    for (auto& [entry, answer] : asked) {
      auto found = answer.get();
      if (found.ok())
        for (net::MemberStatus& member : *found)
          if (!is_known(member.member.task)) all.push_back(std::move(member));
      if (is_known(entry->task)) continue;
      net::MemberStatus& missing = all.emplace_back();
      missing.member.task = entry->task;
      missing.member.host = entry->address.host;
      missing.member.port = entry->address.port;
      missing.status =
          found.ok() ? error(Code::kUnavailable,
                             "[net|control] another task is at its address")
                     : found.status();
    }
  }
  return all;
}

std::string address_of(const net::MemberStatus& each) {
  return net::format_address({each.member.host, each.member.port});
}

std::string text_of(const Members& members) {
  std::string text;
  for (const net::MemberStatus& each : members) {
    text +=
        fmt::format("{}  {}  ", each.member.task.to_string(), address_of(each));
    if (!each.status.ok()) {
      text += fmt::format("{}\n", each.status.to_string());
      continue;
    }
    const net::Load& load = each.load;
    text += fmt::format(
        "up {:.1f} s, {}, {} running, {} finished, {}, tensors {}, memory {}\n",
        double(load.uptime_ns) / 1e9,
        load.is_leaving   ? "leaving"
        : load.has_master ? "busy"
                          : "free",
        counted(load.steps_running, "step"), load.steps_finished,
        counted(load.executables, "executable"),
        devices::bytes_text(int64_t(load.tensor_bytes)),
        devices::bytes_text(int64_t(load.memory_bytes)));
    for (const net::Load::Link& link : load.links)
      text += fmt::format(
          "    {}: round trip {}, {} in, {} out\n", link.peer,
          link.round_trip_ns == 0
              ? "not measured yet"
              : fmt::format("{:.0f} us", double(link.round_trip_ns) / 1e3),
          devices::bytes_text(int64_t(link.bytes_in)),
          devices::bytes_text(int64_t(link.bytes_out)));
  }
  return text;
}

std::string json_of(const Members& members) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const net::MemberStatus& each : members) {
    Json json = {{"task", each.member.task.to_string()},
                 {"address", address_of(each)},
                 {"devices", each.member.devices}};
    const net::Load& load = each.load;
    if (!each.status.ok()) {
      json["error"] = each.status.to_string();
    } else {
      Json links = Json::array();
      for (const net::Load::Link& link : load.links)
        links.push_back({{"peer", link.peer},
                         {"round_trip_ns", link.round_trip_ns},
                         {"bytes_in", link.bytes_in},
                         {"bytes_out", link.bytes_out}});
      json.update({{"incarnation", fmt::format("{:016x}", load.incarnation)},
                   {"uptime_ns", load.uptime_ns},
                   {"has_master", load.has_master},
                   {"is_leaving", load.is_leaving},
                   {"steps_running", load.steps_running},
                   {"steps_finished", load.steps_finished},
                   {"executables", load.executables},
                   {"tensor_bytes", load.tensor_bytes},
                   {"memory_bytes", load.memory_bytes},
                   {"links", std::move(links)}});
    }
    all.push_back(std::move(json));
  }
  return Json{{"members", std::move(all)}}.dump(
             -1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Failure print_status(const StatusCommand& command) {
  NamedCluster cluster;
  const Failure failure = read_cluster_arguments(command.arguments, cluster);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto members = ask(cluster);
  if (!members.ok())
    return run_time_error(Status(members.status()).with_prefix("[--cluster] "));
  print_text(command.is_json ? json_of(*members) : text_of(*members));
  if (Status printed = flush_stdout(); !printed.ok())
    return run_time_error(std::move(printed));
  const auto num_lost = std::ranges::count_if(
      *members,
      [](const net::MemberStatus& each) { return !each.status.ok(); });
  if (num_lost == 0) return {};
  return run_time_error(error(Code::kUnavailable,
                              "[cluster] {} of {} {} not "
                              "answer",
                              num_lost, members->size(),
                              num_lost == 1 ? "does" : "do"));
}

}  // namespace

void add_cluster_status_command(CLI::App& cluster, ExitCode& exit_code) {
  auto command = std::make_shared<StatusCommand>();
  CLI::App* sub = cluster.add_subcommand(
      "status", "say what the workers of a cluster have to do");
  add_cluster_arguments(*sub, command->arguments);
  sub->add_flag("--json", command->is_json, "print JSON");
  sub->callback(
      [command, &exit_code] { exit_code = report(print_status(*command)); });
}

}  // namespace tagflow::apps
