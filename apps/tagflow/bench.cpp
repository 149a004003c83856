// tagflow bench: the workloads of apps/bench.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/compare.h"
#include "apps/bench/input.h"
#include "apps/bench/models.h"
#include "apps/bench/workload.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/child_process.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/tagflow/commands.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

struct BenchCommand {
  std::string name;
  CompareOptions options;
};

// Those that time the runs of one graph, and nothing of this process.
constexpr std::string_view kOverCluster[] = {"loop",         "nested",
                                             "loop_cond",    "map_fn",
                                             "tensor_array", "assign",
                                             "queue",        "chain",
                                             "dead",         "wide",
                                             "empty_step",   "devices_loop",
                                             "loop_grad",    "devices_pingpong",
                                             "devices_hop",  "map_fn_grad",
                                             "lstm",         "mlp",
                                             "cnn",          "cluster_scale"};

// A usage error if a cluster is named, and what is measured cannot run there.
Status check_place(const std::string& name, const EngineOptions& engine) {
  if (engine.cluster.empty() ||
      std::ranges::find(kOverCluster, name) != std::end(kOverCluster))
    return {};
  if (name.starts_with("cluster"))
    return invalid_argument(
        "[--cluster] {} starts its own workers: leave out --cluster", name);
  return invalid_argument("[--cluster] {} does not run there; what does is {}",
                          name, fmt::join(kOverCluster, ", "));
}

Failure run_workload(const Workload& workload, BenchOptions options) {
  Failure failure = connect_cluster(options.engine);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto session = to_session_options(options.engine);
  if (!session.ok()) return usage_error(session.status());
  Result<Measurement> result = workload.measure(options);
  if (!result.ok()) return run_time_error(std::move(result).status());
  print_text(result->to_json() + "\n");
  return {};
}

// Runs each in a separate process, so that none inherits another's memory.
Failure run_all(const BenchOptions& options) {
  Failure failure;
  for (const Workload& workload : workloads()) {
    std::vector<std::string> line = {"/proc/self/exe",
                                     "bench",
                                     std::string(workload.name),
                                     "--repeats",
                                     std::to_string(options.repeats),
                                     "--workers",
                                     std::to_string(options.engine.workers),
                                     "--window",
                                     std::to_string(options.engine.window)};
    if (!options.engine.passes.empty()) {
      line.insert(line.end(), {"--passes", options.engine.passes});
    }
    if (options.engine.mailbox_only) line.emplace_back("--mailbox-only");
    auto process = ChildProcess::start(line);
    if (!process.ok()) return run_time_error(std::move(process).status());
    for (auto answer = process->read_line(); answer.ok();
         answer = process->read_line()) {
      print_text(*answer + "\n");
      // The end of the program reports errors of stdout.
      if (!flush_stdout().ok()) return failure;
    }
    if (const int code = process->wait(); code != 0) {
      failure = {ExitCode::kRunTimeError,
                 error(Code::kUnknown, "[bench] {} ended with {}",
                       workload.name, code)};
      report(failure);
    }
  }
  return failure;
}

Failure unknown_workload(const std::string& name) {
  const std::string nearest = graph::nearest_name(name, names_of_workloads());
  return usage_error(invalid_argument(
      "[bench] there is no workload \"{}\"{}", name,
      nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
}

Failure run_bench(const BenchCommand& command) {
  CompareOptions options = command.options;
  options.over_workers = command.name == "cluster";
  const bool is_known = command.name == "all" || command.name == "compare" ||
                        command.name == "cluster" || command.name == "models" ||
                        command.name == "input" ||
                        find_workload(command.name) != nullptr;
  if (!is_known) return unknown_workload(command.name);
  Status place = check_place(command.name, options.bench.engine);
  if (!place.ok()) return usage_error(std::move(place));
  if (command.name == "all") return run_all(options.bench);
  if (command.name == "compare" || command.name == "cluster" ||
      command.name == "models" || command.name == "input") {
    if (options.python.empty()) {
      return usage_error(invalid_argument(
          "[bench] {} needs --python PATH, a Python with tensorflow",
          command.name));
    }
    if (command.name == "models") return compare_models(options);
    if (command.name == "input") return compare_input(options);
    return compare_with_tensorflow(options);
  }
  return run_workload(*find_workload(command.name), options.bench);
}

std::string list_of_workloads() {
  std::vector<std::pair<std::string_view, std::string_view>> lines;
  for (const Workload& workload : workloads())
    lines.emplace_back(workload.name, workload.what);
  lines.emplace_back("all", "each in a process of its own");
  lines.emplace_back("compare", "the same graphs in TensorFlow (--python)");
  lines.emplace_back("cluster",
                     "two workers, and two of TensorFlow's (--python)");
  lines.emplace_back("models", "frozen Keras models, also there (--python)");
  lines.emplace_back("input", "pipelines of tf.data, also there (--python)");
  size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.first.size());
  std::string text = "Workloads:\n";
  for (const auto& [name, what] : lines)
    text += fmt::format("  {:<{}}  {}\n", name, width, what);
  return text;
}

}  // namespace

std::vector<std::string> names_of_workloads() {
  std::vector<std::string> names = {"all", "compare", "cluster", "models",
                                    "input"};
  for (const Workload& workload : workloads())
    names.emplace_back(workload.name);
  return names;
}

void add_bench_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<BenchCommand>();
  CompareOptions& options = command->options;
  BenchOptions& bench = options.bench;
  CLI::App* sub =
      app.add_subcommand("bench", "measure a workload; one JSON object a line");
  append_to_footer(*sub, list_of_workloads());
  sub->add_option("name", command->name,
                  "a workload, all, compare, cluster, models or input")
      ->required()
      ->type_name("WORKLOAD");
  sub->add_option("--vars", bench.vars, "variables of the loop")
      ->check(CLI::Range(1, 10'000));
  sub->add_option("--trips", bench.trips, "trips; 0: the workload's own")
      ->check(
          CLI::Range(int64_t{0}, int64_t{std::numeric_limits<int32_t>::max()}));
  sub->add_option("--op", bench.op, "the op of chain, dead and wide")
      ->check(CLI::IsMember({"Identity", "Add"}));
  sub->add_option("--nodes", bench.nodes, "nodes; 0: the workload's own")
      ->check(CLI::Range(0, 1'000'000));
  sub->add_option("--size", bench.size, "rows of the matrices")
      ->check(CLI::Range(1, 16'384));
  sub->add_option("--bytes", bench.bytes, "of the checkpoint")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  sub->add_option("--repeats", bench.repeats, "measurements; the median counts")
      ->check(CLI::Range(1, 10'000));
  sub->add_option("--python", options.python,
                  "for compare, cluster, models and input")
      ->type_name("PATH");
  sub->add_option("--only", options.only,
                  "the one workload, model or input to compare")
      ->type_name("NAME");
  sub->add_option("--rounds", options.rounds,
                  "rounds of compare, cluster, models and input")
      ->check(CLI::Range(1, 100));
  sub->add_option("--batch", bench.batch,
                  "of lstm, mlp, cnn and models; 0: the workload's own")
      ->check(CLI::Range(0, 4096));
  sub->add_option("--steps", bench.steps, "of lstm; 0: its own")
      ->check(CLI::Range(0, 100'000));
  sub->add_option("--inputs", bench.inputs,
                  "of lstm, for each step; 0: as many as units")
      ->check(CLI::Range(0, 4096));
  sub->add_option("--units", bench.units, "of lstm; 0: its own")
      ->check(CLI::Range(0, 4096));
  sub->add_option("--tasks", bench.tasks, "workers of cluster_scale")
      ->check(CLI::Range(1, 64));
  sub->add_flag("--train", bench.train,
                "of lstm: a train step instead of a forward pass");
  sub->add_flag("--json", options.json,
                "one object a line, also of compare, cluster, models and "
                "input");
  sub->add_flag("--tls", bench.tls, "connections of cluster_* are by TLS");
  add_engine_options(*sub, bench.engine);
  sub->callback(
      [command, &exit_code] { exit_code = report(run_bench(*command)); });
}

}  // namespace tagflow::apps
