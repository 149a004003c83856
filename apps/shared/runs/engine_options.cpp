#include "apps/shared/runs/engine_options.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "actors/session/backend.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/runs/tls_options.h"
#include "devices/device_registry.h"
#include "graph/passes/passes.h"

namespace tagflow::apps {
namespace {

// CLI11 would parse "-1" as a large number, and clamp numbers that are too
// large.
const CLI::Validator kSeed(
    [](const std::string& text) {
      uint64_t number = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, code] = std::from_chars(text.data(), end, number);
      return code == std::errc() && stop == end
                 ? std::string()
                 : fmt::format(
                       "\"{}\" is not a whole number from 0 to 2^64 - 1", text);
    },
    "SEED");

std::string list_of_passes() {
  std::string names;
  for (const graph::PassItem& pass : graph::passes())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  return fmt::format(
      "the passes over the graph, separated by commas: {}; none: no pass; "
      "--passes=-NAME: all passes but that",
      names);
}

std::string help_of_devices() {
  return fmt::format(
      "The kinds of devices for --devices, 1 to {} of each, their options, and "
      "in\nbrackets the defaults:\n{}",
      devices::kMaxDevicesOfType, devices::DeviceRegistry::global().help());
}

size_t number_of_devices(const std::vector<devices::DeviceSpec>& specs) {
  size_t count = 0;
  bool has_cpu = false;
  for (const devices::DeviceSpec& spec : specs) {
    count += size_t(spec.count);
    has_cpu = has_cpu || spec.keyword == "cpu";
  }
  return has_cpu ? count : count + 1;  // there always is one
}

}  // namespace

Result<graph::OpPolicy> to_policy(const EngineOptions& options) {
  graph::OpPolicy policy;
  if (!options.allowed_ops.empty())
    policy.allowed.emplace(options.allowed_ops.begin(),
                           options.allowed_ops.end());
  policy.denied.insert(options.denied_ops.begin(), options.denied_ops.end());
  if (options.no_files) {
    policy.reads = policy.writes = graph::FileScope::nowhere();
  } else if (!options.file_root.empty()) {
    policy.reads = policy.writes = graph::FileScope::beneath(options.file_root);
  }
  TAGFLOW_RETURN_IF_ERROR(policy.validate());
  return policy;
}

void print_to_stderr(devices::PrintStream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

CLI::Option* add_timeout_option(CLI::App& app, double& seconds,
                                const std::string& help) {
  return app.add_option("--timeout", seconds, help)
      ->check(CLI::Range(0.0, 1e9));
}

// A range check accepts "nan"; and a time that rounds to 0 must not mean no
// time-out.
Result<std::chrono::nanoseconds> to_timeout(double seconds) {
  if (std::isnan(seconds))
    return invalid_argument("[--timeout] \"nan\" is not a number of seconds");
  return std::chrono::ceil<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

void add_policy_options(CLI::App& app, EngineOptions& options) {
  const std::string group = "Policy";
  const auto add_ops = [&](const char* name, std::vector<std::string>& ops,
                           const char* help) {
    app.add_option(name, ops, help)
        ->delimiter(',')
        ->type_name("OP,...")
        ->expected(1)
        ->take_all()
        ->group(group);
  };
  add_ops("--allow-ops", options.allowed_ops,
          "the only ops that the graph and its functions may have");
  add_ops("--deny-ops", options.denied_ops,
          "ops that the graph and its functions must not have");
  app.add_option("--file-root", options.file_root,
                 "the folder for files of ops: relative paths begin there, and "
                 "none leads outside")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--no-file-ops", options.no_files,
               "refuse a graph with an op that uses files")
      ->excludes("--file-root")
      ->group(group);
}

void add_engine_options(CLI::App& app, EngineOptions& options) {
  const std::string group = "Engine";
  add_workers_option(app, options.workers)->group(group);
  app.add_option("--window", options.window,
                 "parallel_iterations of every loop; 0: as the graph says")
      ->check(CLI::Range(0, 1 << 20))
      ->group(group);
  app.add_flag("--mailbox-only", options.mailbox_only,
               "send every batch of tokens through the actors' mailboxes")
      ->group(group);
  app.add_option("--passes", options.passes, list_of_passes())
      ->type_name("PASS,...")
      ->group(group);
  app.add_option("--devices", options.devices,
                 "devices to run on: KIND[:COUNT][:OPTION=VALUE]..., separated "
                 "by commas; see below")
      ->type_name("SPEC")
      ->group(group);
  app.add_flag("--soft-placement", options.soft_placement,
               "run a node on a CPU if it cannot run on the device that it "
               "requests")
      ->group(group);
  app.add_option("--scatter", options.scatter,
                 "place every node on a device drawn at random from those that "
                 "it may run on; devices that the graph requests are kept")
      ->check(kSeed)
      ->type_name("SEED")
      ->group(group);
  app.add_flag("--no-recv-scheduling", options.no_recv_scheduling,
               "start every Recv as early as it can be")
      ->group(group);
  app.add_option("--lossy", options.lossy,
                 "send this float32 tensor to other devices as 16 bits; *: all "
                 "tensors but those that are only fetched")
      ->type_name("NAME:PORT")
      ->expected(1)
      ->take_all()
      ->group(group);
  app.add_flag("--through-wire", options.through_wire,
               "write what each device runs to bytes, and run what is read "
               "from them")
      ->group(group);
  CLI::Option* cluster =
      app.add_option("--cluster", options.cluster,
                     "run on the workers of this cluster file, which \"tagflow "
                     "cluster start\" writes, or of the cluster that a worker "
                     "at this address has joined, or of the master service at "
                     "tagflow://HOST:PORT")
          ->type_name("FILE|HOST:PORT")
          ->group(group);
  app.add_option("--secret-file", options.secret_file,
                 "the secret of the cluster; default: the file that the "
                 "cluster file names")
      ->type_name("FILE")
      ->needs(cluster)
      ->group(group);
  add_tls_options(app, options.tls, cluster, group);
  app.add_option("--seed", options.seed, "seed of the session's random ops")
      ->check(kSeed)
      ->type_name("SEED")
      ->group(group);
  add_timeout_option(app, options.timeout,
                     "seconds after which reading the graph, preparing the "
                     "run, or a run ends; 0: none")
      ->group(group);
  app.add_option("--max-nodes", options.max_nodes,
                 "the most nodes of the graph, and of what runs, with its "
                 "functions inlined")
      ->check(CLI::Range(size_t{1}, size_t{1} << 31))
      ->type_name("N")
      ->group(group);
  add_policy_options(app, options);
  append_to_footer(app, help_of_devices());
}

Result<actors::SessionOptions> to_session_options(
    const EngineOptions& options) {
  const auto specs = devices::parse_device_specs(options.devices);
  if (!specs.ok()) return specs.status().with_prefix("[--devices] ");
  const size_t num_devices = options.backend == nullptr
                                 ? number_of_devices(*specs)
                                 : options.backend->devices().size();
  if (options.scatter && num_devices == 1)
    spdlog::warn(
        "[--scatter] there is only one device to place nodes on; add others "
        "with --devices");
  actors::SessionOptions session;
  session.backend = options.backend;
  // The logger makes it printable: a warning may have the names of a peer.
  session.on_warning = [](const std::string& text) {
    spdlog::warn("{}", text);
  };
  Result<graph::PassSet> passes = graph::PassSet::parse(options.passes);
  if (!passes.ok())
    return std::move(passes).status().with_prefix("[--passes] ");
  session.passes = *passes;
  session.workers = options.workers;
  session.window = options.window;
  session.devices = options.devices;
  session.soft_placement = options.soft_placement;
  session.scatter = options.scatter;
  session.schedule_receives = !options.no_recv_scheduling;
  session.lossy = options.lossy;
  session.through_wire = options.through_wire;
  session.seed = options.seed;
  session.max_nodes = options.max_nodes;
  TAGFLOW_ASSIGN(session.policy, to_policy(options));
  if (options.keeps_stdout) session.print_sink = print_to_stderr;
  if (options.mailbox_only) session.hand_off = actors::HandOff::kMailbox;
  TAGFLOW_ASSIGN(session.timeout, to_timeout(options.timeout));
  return session;
}

}  // namespace tagflow::apps
