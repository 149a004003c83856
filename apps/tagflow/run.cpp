// tagflow run: one graph, one signature, once or several times.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/results.h"
#include "apps/common/terminal.h"
#include "apps/common/trace.h"
#include "apps/io/file.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {
namespace {

struct RunOptions {
  SignatureOptions signature;
  int repeat = 1;
  std::string out;
  std::string trace;
  std::string logdir;
  bool json = false;
};

// Where several runs were asked for: how long one took.
void log_times(std::vector<double> seconds) {
  if (seconds.size() < 2) return;
  std::sort(seconds.begin(), seconds.end());
  spdlog::info("{} runs: {:.3f} us median, {:.3f} us fastest", seconds.size(),
               seconds[seconds.size() / 2] * 1e6, seconds.front() * 1e6);
}

struct Results {
  std::vector<Tensor> values;
  actors::RunStats stats;
  std::vector<DeviceMemory> devices;
};

// Ends the session where it writes a trace.
Result<Results> run_repeatedly(Prepared& prepared, const RunOptions& options) {
  std::vector<std::string> ports;
  std::vector<Tensor> values;
  for (const auto& [port, value] : prepared.feeds) {
    ports.push_back(port);
    values.push_back(value);
  }
  TAGFLOW_ASSIGN(actors::Callable call,
                 prepared.session->make_callable(ports, prepared.fetches,
                                                 prepared.targets));
  actors::Trace trace;
  actors::RunOptions run;
  if (!options.trace.empty()) run.trace = &trace;
  Results results;
  std::vector<double> seconds;
  Status status;
  for (int i = 0; i < options.repeat && status.ok(); ++i) {
    Result<std::vector<Tensor>> fetched = call(values, run, &results.stats);
    status = fetched.status();
    if (fetched.ok()) results.values = std::move(fetched).value();
    seconds.push_back(results.stats.seconds);
  }
  results.devices = memory_of(*prepared.session);
  // The trace of a run that failed is wanted most.
  if (!options.trace.empty()) {
    // One that was cut short may go on for a moment; the session waits for it.
    call = {};
    prepared.session.reset();
    TAGFLOW_RETURN_IF_ERROR(write_trace(trace, options.trace));
  }
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  log_times(std::move(seconds));
  return results;
}

Failure print_results(const RunOptions& options,
                      const std::vector<FetchName>& names,
                      const Results& results) {
  if (!options.out.empty()) {
    Status status = write_results(options.out, names, results.values);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  std::string text;
  if (options.json) {
    text = format_results_json(names, results.values, results.stats,
                               results.devices);
  } else if (options.out.empty()) {
    text = format_results(names, results.values);
  }
  print_text(text);
  return {};
}

// `prepared` is kept for the caller: to let go of a session takes as long as a
// kernel that was cut short goes on, and what is wrong should be said before.
Failure run_graph(const RunOptions& options, Prepared& prepared) {
  if (!options.logdir.empty()) {
    return usage_error(
        error(Code::kUnimplemented, "[--logdir] event files do not exist yet"));
  }
  prepared = prepare(options.signature);
  if (prepared.failure.exit_code != ExitCode::kOk) return prepared.failure;
  if (!options.out.empty()) {
    Status status = prepare_folder(options.out, prepared.names);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  if (!options.trace.empty()) {
    Status status = io::check_writable(options.trace);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  Result<Results> results = run_repeatedly(prepared, options);
  if (!results.ok()) return run_time_error(std::move(results).status());
  return print_results(options, prepared.names, *results);
}

}  // namespace

void add_run_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "run a graph and print results");
  add_signature_options(*run, options->signature);
  run->add_option("--repeat", options->repeat, "how often to run")
      ->check(CLI::Range(1, 1'000'000'000));
  run->add_option("--out", options->out,
                  "write each fetch to DIR/NAME_PORT.npy (strings: .json)")
      ->type_name("DIR");
  run->add_option("--trace", options->trace,
                  "write a trace for Perfetto or chrome://tracing")
      ->type_name("FILE");
  run->add_option("--logdir", options->logdir,
                  "event files for TensorBoard; not there yet")
      ->type_name("DIR");
  run->add_flag("--json", options->json,
                "print results as one JSON object; errors stay text on stderr");
  run->callback([options, &exit_code] {
    Prepared prepared;
    exit_code = report(run_graph(*options, prepared));
  });
}

}  // namespace tagflow::apps
