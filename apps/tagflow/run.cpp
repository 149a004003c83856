// tagflow run: one graph, one signature, once, or in many steps.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/training_loop.h"
#include "actors/watch/cost_recorder.h"
#include "apps/shared/io/file.h"
#include "apps/shared/live/page_of_session.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/program/trace.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/log.h"
#include "apps/shared/runs/progress.h"
#include "apps/shared/runs/restart_options.h"
#include "apps/shared/runs/run_figures.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/shared/runs/step_checkpoints.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/filling.h"
#include "apps/tagflow/model/cost_file.h"
#include "apps/tagflow/model/numerics_check.h"
#include "apps/tagflow/model/results.h"
#include "apps/tagflow/run_expect.h"
#include "apps/tagflow/run_stats.h"
#include "apps/tagflow/run_summaries.h"
#include "apps/tagflow/run_watch.h"
#include "apps/tagflow/signature.h"
#include "apps/tagflow/steps.h"

namespace tagflow::apps {
namespace {

struct RunOptions {
  SignatureOptions signature;
  CheckpointOptions checkpoints;
  int repeat = 1;
  int64_t steps = 0;  // 0: none; it runs `repeat` times
  RestartOptions restarts;
  std::string http;  // where it says how it goes on; empty: nowhere
  bool logs_json = false;
  std::shared_ptr<RunFigures> figures = std::make_shared<RunFigures>();
  std::string out;
  std::string expect;
  std::string trace;
  std::string summaries;
  InspectOptions inspect;
  std::shared_ptr<live::LivePage> page;  // of --inspect; null: there is none
  // Null: nobody asks for names, or the session does not know them.
  std::shared_ptr<const RunNames> names;
  std::vector<std::string> watch;
  std::string watch_out;
  bool checks_numerics = false;
  bool stats = false;
  bool learn = false;
  bool json = false;
};

// The times of runs. Of very many it keeps every 2nd, 4th, ... for the median.
class Times {
 public:
  void add(double seconds) {
    fastest_ = std::min(fastest_, seconds);
    if (count_++ % stride_ != 0) return;
    kept_.push_back(seconds);
    if (kept_.size() < kMost) return;
    for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }

  // For several runs.
  void log() {
    if (count_ < 2) return;
    const auto middle = kept_.begin() + ptrdiff_t(kept_.size() / 2);
    std::nth_element(kept_.begin(), middle, kept_.end());
    spdlog::info("{} runs: {:.3f} us median, {:.3f} us fastest", count_,
                 *middle * 1e6, fastest_ * 1e6);
  }

 private:
  static constexpr size_t kMost = size_t(1) << 20;
  std::vector<double> kept_;
  size_t count_ = 0, stride_ = 1;
  double fastest_ = std::numeric_limits<double>::infinity();
};

struct Results {
  std::vector<Tensor> values;
  actors::RunStats stats;
  std::vector<DeviceMemory> devices;
  Failure failure;  // its code is kOk if all runs succeeded
};

// `run` has the options that the runs share; `summaries` may be null.
Status run_repeatedly(const Prepared& prepared, int repeat,
                      const actors::RunOptions& run, RunFigures& figures,
                      RunSummaries* summaries, Results& results) {
  std::vector<Tensor> values;
  TAGFLOW_ASSIGN(const actors::Callable call, make_callable(prepared, values));
  Times times;
  Progress progress("run", 0, repeat, is_terminal());
  for (int i = 0; i < repeat; ++i) {
    figures.steps.on_begin();
    auto answer = call(
        values, summaries == nullptr ? run : summaries->options_of(i + 1, run),
        &results.stats);
    figures.steps.on_end(answer.status().code());
    TAGFLOW_ASSIGN(results.values, std::move(answer));
    times.add(results.stats.seconds);
    if (summaries != nullptr)
      TAGFLOW_RETURN_IF_ERROR(summaries->after_step(i + 1, results.values));
    progress.after(i + 1);
  }
  progress.clear();
  times.log();
  return {};
}

// Opens the folder of --summaries, if there is one.
Status open_summaries(const RunOptions& options, Prepared& prepared,
                      int64_t last_step,
                      std::shared_ptr<RunSummaries>& summaries) {
  if (options.summaries.empty()) return {};
  TAGFLOW_ASSIGN(summaries,
                 RunSummaries::open(
                     options.summaries, prepared, last_step,
                     options.steps == 0 ? options.repeat : options.steps,
                     /*is_cluster=*/!options.signature.engine.cluster.empty()));
  prepared.session.keep(summaries);
  return {};
}

// Restores the variables, and executes all runs. `trace` and `observer` may be
// null.
Results run_prepared(const RunOptions& options, Prepared& prepared,
                     actors::Trace* trace, actors::Observer* observer) {
  Results results;
  Filling filling(prepared);
  // Waits for the current step, since half a step must not be saved.
  const std::chrono::seconds patience(options.checkpoints.save.empty() ? 0
                                                                       : 10);
  const WatchedRun watched(*prepared.session, filling.is_needed(), patience);
  actors::RunOptions run;
  run.cancel = watched.token();
  if (options.page != nullptr) run.inspector = &options.page->inspector();
  const PageOfSession shown(options.page.get(), *prepared.session,
                            options.names.get());
  StepCheckpoints checkpoints;
  results.failure = checkpoints.start(options.checkpoints, *prepared.session,
                                      prepared.state, run, prepared.feeds);
  if (results.failure.exit_code == ExitCode::kOk) {
    run.trace = trace;
    run.observer = observer;
    std::shared_ptr<RunSummaries> summaries;
    Status status =
        open_summaries(options, prepared, checkpoints.last_step(), summaries);
    if (status.ok()) status = filling.start();
    if (status.ok())
      status =
          options.steps == 0
              ? run_repeatedly(prepared, options.repeat, run, *options.figures,
                               summaries.get(), results)
              : run_steps(prepared,
                          {options.steps, options.json,
                           /*is_quiet=*/!options.json && !options.out.empty(),
                           run, options.figures, summaries.get()},
                          watched, checkpoints, results.values);
    if (summaries != nullptr) {
      Status written = summaries->close();
      if (status.ok()) status = std::move(written);
    }
    results.failure = run_time_error(
        with_hint_of_init(filling.end(std::move(status)), options.checkpoints));
  }
  results.devices = memory_of(*prepared.session);
  if (results.failure.exit_code == ExitCode::kRunTimeError)
    results.failure = watched.failure_of(std::move(results.failure.status));
  return results;
}

// Connects to the workers that there are now, which know nothing of the run
// that has ended, and goes on from the last checkpoint.
Results restart(const RunOptions& options, Prepared& prepared,
                const std::shared_ptr<actors::Trace>& trace) {
  // Its workers obey one master at a time.
  prepared = {};
  SignatureOptions signature = options.signature;
  signature.op_libraries.clear();  // they are loaded
  prepared = prepare(signature);
  Results results;
  results.failure = prepared.failure;
  prepared.session.keep(trace);
  if (options.page != nullptr) prepared.session.keep(options.page->share());
  if (results.failure.exit_code == ExitCode::kOk)
    results = run_prepared(options, prepared, trace.get(), nullptr);
  // Such as a node that has no place without them.
  const std::vector<std::string>& lost = signature.engine.reconnection->lost;
  if (results.failure.exit_code == ExitCode::kRunTimeError && !lost.empty())
    results.failure = {ExitCode::kPeerLost,
                       std::move(results.failure.status)
                           .with_prefix(fmt::format("[--restarts] without {}: ",
                                                    fmt::join(lost, ", ")))};
  return results;
}

// As run_prepared(), but goes on after the loss of workers, as often as the
// options say.
Results run_with_restarts(const RunOptions& options, Prepared& prepared,
                          const std::shared_ptr<actors::Trace>& trace,
                          actors::Observer* observer) {
  Results results;
  (void)actors::run_with_restarts(options.restarts.count, [&](int number) {
    if (number == 0) {
      results = run_prepared(options, prepared, trace.get(), observer);
    } else {
      spdlog::warn("[--restarts] {}; restart {} of {}",
                   results.failure.status.message(), number,
                   options.restarts.count);
      options.figures->on_restart();
      results = restart(options, prepared, trace);
    }
    return results.failure.status;
  });
  return results;
}

constexpr size_t kMaxFilesNamed = 8;

Failure print_results(const RunOptions& options,
                      const std::vector<FetchName>& names,
                      const ExpectedResults& expected, const Results& results) {
  // There are none if no step was left to run.
  const bool has_results = results.values.size() == names.size();
  if (!options.out.empty() && has_results) {
    const auto files = write_results(options.out, names, results.values);
    if (!files.ok()) return run_time_error(files.status());
    spdlog::info("wrote {}", first_of(*files, kMaxFilesNamed));
  }
  if (options.steps == 0 && options.json) {
    print_text(format_results_json(names, results.values, results.stats,
                                   results.devices));
  } else if (options.steps == 0 && options.out.empty()) {
    print_text(format_results(names, results.values));
  }
  return run_time_error(expected.check(names, results.values));
}

// Reads the file of --expect, if there is one.
Failure read_expected(const RunOptions& options, const Prepared& prepared,
                      ExpectedResults& expected) {
  if (options.expect.empty()) return {};
  std::vector<graph::Endpoint> fetches;
  for (const std::string& fetch : prepared.fetches) {
    auto endpoint = prepared.session->graph().endpoint(fetch);
    if (!endpoint.ok()) return run_time_error(std::move(endpoint).status());
    fetches.push_back(*endpoint);
  }
  auto read = ExpectedResults::read(options.expect, prepared.names, fetches);
  if (!read.ok()) return file_error(std::move(read).status());
  expected = std::move(*read);
  return {};
}

// The names that options and viewers may ask for; what is wrong with the
// signature, the run says.
Failure read_names(RunOptions& options, const Prepared& prepared) {
  if (options.page == nullptr && options.watch.empty()) return {};
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  auto names = RunNames::of(*prepared.session, feeds, prepared.fetches,
                            prepared.targets);
  if (!names.ok()) return {};
  options.names = std::make_shared<const RunNames>(std::move(*names));
  return run_time_error(check_stop(options.page.get(), *options.names));
}

// Checks the options before anything runs.
Failure check_outputs(const RunOptions& options, const Prepared& prepared) {
  const NamedFile costs = {"--costs", options.signature.costs};
  Status status = check_distinct({{"--trace", options.trace}},
                                 {{"GRAPH", options.signature.graph}, costs});
  if (status.ok() && options.learn)
    status = check_distinct({costs}, {{"GRAPH", options.signature.graph}});
  if (!status.ok()) return usage_error(std::move(status));
  if (!options.out.empty())
    status = prepare_folder(options.out, prepared.names);
  if (status.ok() && !options.trace.empty())
    status = io::check_writable(options.trace);
  if (status.ok() && options.learn)
    status = io::check_writable(options.signature.costs);
  return run_time_error(std::move(status));
}

Failure failure_of_pages(Status status) {
  return status.code() == Code::kInvalidArgument
             ? usage_error(std::move(status))
             : Failure{ExitCode::kRunTimeError, std::move(status)};
}

// Adds the observer of --watch.
Failure add_watch(const RunOptions& options, ObserverGroup& observers,
                  std::shared_ptr<TensorWatch>& watch) {
  if (options.watch.empty() || options.names == nullptr) return {};
  auto made = TensorWatch::make(options.watch, *options.names,
                                options.watch_out, options.json);
  if (!made.ok()) {
    Status status = std::move(made).status().with_prefix("[--watch] ");
    return status.code() == Code::kInvalidArgument
               ? usage_error(std::move(status))
               : run_time_error(std::move(status));
  }
  watch = std::move(made).value();
  observers.add(watch);
  return {};
}

// To stderr, so that stdout has the results alone. FailedPrecondition if a run
// does not end.
Status print_stats(OwnedSession& session, const actors::Trace& trace,
                   const actors::OutputRecorder* outputs) {
  if (!session.end(kLongPatience))
    return error(Code::kFailedPrecondition,
                 "[--stats] a kernel that cannot be interrupted is still "
                 "running and being recorded");
  fmt::print(stderr, "{}",
             format_stats(actors::node_stats(trace, outputs),
                          outputs != nullptr, trace.dropped()));
  return {};
}

void warn_of_unseen(const TensorWatch& watch) {
  for (const std::string& name : watch.unseen())
    spdlog::warn("[--watch] {} was not computed in any such iteration", name);
}

ExitCode run_graph(RunOptions& options) {
  Status usage =
      StepCheckpoints::check(options.checkpoints, options.steps > 0,
                             !options.signature.engine.cluster.empty());
  if (usage.ok() && options.learn)
    usage = refuse_watching_cluster(options.signature.engine, "--learn");
  if (usage.ok() && !options.watch.empty())
    usage = refuse_watching_cluster(options.signature.engine, "--watch");
  if (usage.ok() && options.checks_numerics)
    usage =
        refuse_watching_cluster(options.signature.engine, "--check-numerics");
  if (!usage.ok()) return report(usage_error(std::move(usage)));
  if (options.logs_json)
    if (Status logs = log_as_json(""); !logs.ok())
      return report(run_time_error(std::move(logs)));
  std::unique_ptr<StatusPages> pages;
  std::optional<StatusPages::Opened> opened;
  if (!options.http.empty()) {
    auto started = StatusPages::start(options.http, /*beyond_loopback=*/false);
    if (!started.ok()) return report(failure_of_pages(started.status()));
    pages = std::move(*started);
    opened.emplace(*pages,
                   StatusPages::Sources{
                       [] { return StatusPages::Health(); },
                       [figures = options.figures](net::MetricText& text) {
                         figures->write(text);
                       }},
                   "the run ends");
    spdlog::info("http: {}", pages->address());
  }
  auto page = open_page(options.inspect, "tagflow run");
  if (!page.ok()) return report(failure_of_pages(page.status()));
  options.page = std::move(*page);
  Prepared prepared = prepare(options.signature);
  Failure failure = prepared.failure;
  if (failure.exit_code == ExitCode::kOk)
    failure = check_outputs(options, prepared);
  ExpectedResults expected;
  if (failure.exit_code == ExitCode::kOk)
    failure = read_expected(options, prepared, expected);
  if (failure.exit_code == ExitCode::kOk)
    failure = read_names(options, prepared);
  if (failure.exit_code != ExitCode::kOk) return report(failure);

  std::shared_ptr<actors::Trace> trace;
  if (!options.trace.empty() || options.stats)
    trace = std::make_shared<actors::Trace>();
  prepared.session.keep(trace);
  if (options.page != nullptr) prepared.session.keep(options.page->share());
  std::shared_ptr<actors::CostRecorder> costs;
  if (options.learn)
    costs = std::make_shared<actors::CostRecorder>(prepared.session->devices());
  const auto observers = std::make_shared<ObserverGroup>();
  prepared.session.keep(observers);
  if (costs != nullptr) observers->add(costs);
  std::shared_ptr<actors::OutputRecorder> outputs;
  if (options.stats && options.signature.engine.cluster.empty()) {
    outputs = std::make_shared<actors::OutputRecorder>();
    observers->add(outputs);
  }
  std::shared_ptr<TensorWatch> watch;
  failure = add_watch(options, *observers, watch);
  if (failure.exit_code != ExitCode::kOk) return report(failure);
  // Behind the watch, which has printed what the check ends the run for.
  if (options.checks_numerics)
    observers->add(std::make_shared<NumericsCheck>());
  if (options.page != nullptr)
    options.page->set_can_watch(observers->empty() &&
                                options.signature.engine.cluster.empty());
  Results results = run_with_restarts(
      options, prepared, trace, observers->empty() ? nullptr : observers.get());
  if (options.page != nullptr) options.page->say_end();
  failure = std::move(results.failure);
  if (watch != nullptr) warn_of_unseen(*watch);
  if (failure.exit_code == ExitCode::kOk)
    failure = print_results(options, prepared.names, expected, results);
  // A failed run does not update the costs.
  if (failure.exit_code == ExitCode::kOk && costs != nullptr)
    failure =
        run_time_error(add_to_costs(options.signature.costs, costs->costs())
                           .with_prefix("[--learn] "));
  const ExitCode code = report(failure);
  if (trace == nullptr) return code;
  // The trace of a failed run is the most useful one. All other output is
  // written first, so that a failure to write the trace does not lose it.
  (void)flush_stdout();
  if (options.stats)
    if (Status shown = print_stats(prepared.session, *trace, outputs.get());
        !shown.ok())
      return report(run_time_error(std::move(shown)));
  if (options.trace.empty()) return code;
  const ExitCode traced = report(run_time_error(
      end_and_write_trace(prepared.session, *trace, options.trace)));
  return code == ExitCode::kOk ? traced : code;
}

}  // namespace

void add_run_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "run a graph and print results");
  add_signature_options(*run, options->signature);
  CLI::Option* repeat =
      run->add_option("--repeat", options->repeat,
                      "how often to run with the same feeds, without results "
                      "in between")
          ->check(CLI::Range(1, 1'000'000'000));
  run->add_option("--steps", options->steps,
                  "run so many steps, each with its results, and count those "
                  "of the run that --save resumes")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 53))
      ->excludes(repeat);
  add_checkpoint_options(*run, options->checkpoints);
  add_restart_options(*run, options->restarts)
      ->needs(run->get_option("--save"))
      ->needs(run->get_option("--cluster"));
  add_http_option(*run, options->http);
  add_log_format_option(*run, options->logs_json);
  add_inspect_options(*run, options->inspect);
  add_output_option(
      *run, "--out", options->out,
      "write each fetch to DIR/NAME_PORT.npy, or an output of the "
      "signature to DIR/NAME.npy (strings: .json), or all to one file whose "
      "name ends in .npz; with --steps, those of the last step",
      "DIR");
  run->add_option("--expect", options->expect,
                  "compare the results with those of a file or folder that "
                  "--out could have written, which is read before the run, and "
                  "end with 1 if they differ")
      ->type_name("PATH");
  add_output_option(*run, "--trace", options->trace,
                    "write a trace for Perfetto or chrome://tracing");
  run->add_flag("--stats", options->stats,
                "print to stderr how long each op and node took in all, and "
                "how many bytes it output");
  CLI::Option* watch = run->add_option(
      "--watch", options->watch,
      "print NODE:PORT whenever it is computed, in all iterations, or in those "
      "that are named: NODE@ITERATION, NODE@FRAME/ITERATION, several with "
      "commas, ranges as 3-5; without --passes, the graph is run as it is");
  watch->type_name("NODE[@TAG]")->allow_extra_args(false);
  add_output_option(*run, "--watch-out", options->watch_out,
                    "write what --watch would print to DIR/NODE_PORT@TAG.npy "
                    "(strings: .json)",
                    "DIR")
      ->needs(watch);
  run->add_flag("--check-numerics", options->checks_numerics,
                "end the run where a node first makes a NaN or an infinity, "
                "and name the node, its iteration and its inputs; without "
                "--passes, the graph is run as it is");
  run->add_flag("--learn", options->learn,
                "measure what nodes cost, which slows the run down, and add "
                "them to the file of --costs at the end; the file need not "
                "exist")
      ->needs(run->get_option("--costs"));
  add_output_option(*run, "--summaries", options->summaries,
                    "write the graph, fetched summaries and numbers of each "
                    "step, and the times of one step to an event file for "
                    "TensorBoard",
                    "DIR");
  run->add_flag("--json", options->json,
                "print results as one JSON object, with --steps one a line; "
                "errors stay text on stderr");
  run->callback([options, &exit_code] {
    options->signature.makes_costs = options->learn;
    // Passes merge nodes, or compute them when the graph is compiled.
    if ((!options->watch.empty() || options->checks_numerics) &&
        options->signature.engine.passes.empty())
      options->signature.engine.passes = "none";
    options->signature.engine.keeps_stdout = options->json;
    options->signature.engine.figures = options->figures;
    options->checkpoints.figures = options->figures;
    options->signature.engine.reconnection = reconnection_of(options->restarts);
    exit_code = run_graph(*options);
  });
}

}  // namespace tagflow::apps
