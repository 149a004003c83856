// tagflow run: one graph, one signature, once or several times.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/engine_options.h"
#include "apps/common/feed.h"
#include "apps/common/results.h"
#include "apps/common/terminal.h"
#include "apps/common/trace.h"
#include "apps/tagflow/commands.h"
#include "graph/graphdef.h"

namespace tagflow::apps {
namespace {

struct RunOptions {
  std::string graph;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  int repeat = 1;
  std::string out;
  std::string trace;
  std::string logdir;
  bool json = false;
  EngineOptions engine;
};

// The texts of --feed; each is checked before any file is opened.
Result<std::vector<FeedText>> parse_feeds(
    const std::vector<std::string>& texts) {
  std::vector<FeedText> feeds;
  for (const std::string& text : texts) {
    TAGFLOW_ASSIGN(FeedText feed, parse_feed(text));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

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
};

Result<Results> run_repeatedly(actors::Session& session,
                               const std::vector<actors::Feed>& feeds,
                               const RunOptions& options) {
  std::vector<std::string> ports;
  std::vector<Tensor> values;
  for (const auto& [port, value] : feeds) {
    ports.push_back(port);
    values.push_back(value);
  }
  TAGFLOW_ASSIGN(
      actors::Callable call,
      session.make_callable(ports, options.fetches, options.targets));
  TraceRecorder trace;
  actors::RunOptions run;
  if (!options.trace.empty()) run.observer = &trace;
  Results results;
  std::vector<double> seconds;
  Status status;
  for (int i = 0; i < options.repeat && status.ok(); ++i) {
    Result<std::vector<Tensor>> fetched = call(values, run, &results.stats);
    status = fetched.status();
    if (fetched.ok()) results.values = std::move(fetched).value();
    seconds.push_back(results.stats.seconds);
  }
  // The trace of a run that failed is wanted most.
  if (!options.trace.empty()) {
    TAGFLOW_RETURN_IF_ERROR(trace.write(options.trace));
  }
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  log_times(std::move(seconds));
  return results;
}

Failure print_results(const RunOptions& options, const Results& results) {
  if (!options.out.empty()) {
    Status status = write_results(options.out, options.fetches, results.values);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  std::string text;
  if (options.json) {
    text = format_results_json(options.fetches, results.values, results.stats);
  } else if (options.out.empty()) {
    text = format_results(options.fetches, results.values);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

Failure run_graph(const RunOptions& options) {
  if (options.fetches.empty() && options.targets.empty()) {
    return usage_error(
        invalid_argument("[run] nothing to run: give --fetch or --target"));
  }
  for (const std::string& fetch : options.fetches) {
    Status status = graph::parse_endpoint(fetch).status();
    if (!status.ok()) {
      return usage_error(std::move(status).with_prefix("[--fetch] "));
    }
  }
  if (!options.logdir.empty()) {
    return usage_error(
        error(Code::kUnimplemented, "[--logdir] event files do not exist yet"));
  }
  Result<std::vector<FeedText>> texts = parse_feeds(options.feeds);
  if (!texts.ok()) return usage_error(std::move(texts).status());
  const auto session_options = to_session_options(options.engine);
  if (!session_options.ok()) return usage_error(session_options.status());

  Result<graph::Graph> graph = graph::load_graph(options.graph);
  if (!graph.ok()) return file_error(std::move(graph).status());
  LoadedFeeds feeds = load_feeds(*graph, *texts);
  if (feeds.failure.exit_code != ExitCode::kOk) return feeds.failure;

  auto session = actors::Session::create(*session_options);
  if (!session.ok()) return run_time_error(std::move(session).status());
  Status extended = (*session)->extend(*graph);
  if (!extended.ok()) return run_time_error(std::move(extended));
  Result<Results> results = run_repeatedly(**session, feeds.feeds, options);
  if (!results.ok()) return run_time_error(std::move(results).status());
  return print_results(options, *results);
}

}  // namespace

void add_run_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "run a graph and print results");
  run->add_option("graph", options->graph,
                  "a GraphDef: *.pb is binary, *.pbtxt text")
      ->required()
      ->type_name("GRAPH");
  run->add_option("--feed", options->feeds,
                  "the value of a tensor: a .npy file, a .json file of "
                  "strings, or a JSON literal")
      ->type_name("NAME:PORT=VALUE")
      ->expected(1)
      ->take_all();
  run->add_option("--fetch", options->fetches, "a tensor to compute")
      ->type_name("NAME:PORT")
      ->expected(1)
      ->take_all();
  run->add_option("--target", options->targets,
                  "a node to run, whose outputs are not wanted")
      ->type_name("NODE")
      ->expected(1)
      ->take_all();
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
  add_engine_options(*run, options->engine);
  run->callback(
      [options, &exit_code] { exit_code = report(run_graph(*options)); });
}

}  // namespace tagflow::apps
