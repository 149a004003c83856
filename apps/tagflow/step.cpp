// tagflow step: one run, token by token; over a cluster, firing by firing.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "actors/plan/compile.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/program/trace.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/results.h"
#include "apps/tagflow/signature.h"
#include "apps/tagflow/stepper/recorder.h"
#include "apps/tagflow/stepper/text.h"
#include "apps/tagflow/stepper/trace_recording.h"

namespace tagflow::apps {
namespace {

constexpr size_t kMaxSteps = 100'000;

struct StepOptions {
  SignatureOptions signature;
  size_t limit = 2000;
  std::string html;
  std::string trace;
  stepper::StepFilter filter;
  bool plan = false;
  bool json = false;

  bool is_elsewhere() const { return !signature.engine.cluster.empty(); }
};

// Runs on the session's one worker only: a lent thread would leave heavy
// kernels to the worker, and run concurrently with it.
Result<std::vector<Tensor>> run_on_worker(const Prepared& prepared,
                                          const actors::RunOptions& run) {
  // The answering thread may still use this when the answer is read. No
  // std::future: ThreadSanitizer keeps signals from a thread that waits for it.
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<std::vector<Tensor>>> answer;
  };
  const auto waiting = std::make_shared<Waiting>();
  prepared.session->run_async(
      prepared.feeds, prepared.fetches, prepared.targets, run,
      [waiting](Result<std::vector<Tensor>> answer, const actors::RunStats&) {
        std::lock_guard lock(waiting->mutex);
        waiting->answer = std::move(answer);
        waiting->changed.notify_all();
      });
  std::unique_lock lock(waiting->mutex);
  waiting->changed.wait(lock, [&] { return waiting->answer.has_value(); });
  return *std::move(waiting->answer);
}

stepper::Frontispiece describe_run(const StepOptions& options,
                                   const std::vector<FetchName>& names,
                                   const stepper::Recording& recording,
                                   const std::vector<Tensor>& fetched,
                                   const Status& status) {
  const EngineOptions& engine = options.signature.engine;
  stepper::Frontispiece front;
  front.title = options.signature.graph;
  if (engine.passes != "none") {
    front.notes.push_back(
        "with passes: nodes that they compiled to edges do not fire");
  }
  if (engine.workers != 1) {
    front.notes.push_back(
        "with several workers the order differs from run to run");
  }
  if (options.is_elsewhere()) {
    front.notes.push_back(
        "the steps of all processes are in the order of their times; what "
        "tokens have is not known here (\"?\")");
  }
  if (recording.is_full) {
    front.notes.push_back(
        fmt::format("the run was stopped after {} steps (--limit); it has no "
                    "result",
                    recording.steps.size()));
  } else if (status.ok()) {
    front.result = format_results(names, fetched);
  } else {
    front.error = status.to_string();
  }
  return front;
}

Status write_page(const std::string& path, const stepper::Recording& recording,
                  const stepper::Frontispiece& front) {
  TAGFLOW_ASSIGN(const draw::Layout layout, draw::lay_out(recording.drawing));
  return io::write_file(path, to_page(recording, front, layout));
}

Status check_files(const StepOptions& options) {
  for (const std::string& path : {options.html, options.trace})
    if (!path.empty()) TAGFLOW_RETURN_IF_ERROR(io::check_writable(path));
  return {};
}

// The plan as the session compiles it, before it knows any feed's shape.
Result<stepper::PlanListing> list_plans(const Prepared& prepared) {
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  TAGFLOW_ASSIGN(
      actors::Distribution distribution,
      prepared.session->explain(feeds, prepared.fetches, prepared.targets));
  TAGFLOW_ASSIGN(const auto plans,
                 actors::compile(std::move(distribution.partitions),
                                 prepared.session->options(),
                                 prepared.session->devices()));
  return stepper::list_plans(plans);
}

struct Steps {
  std::shared_ptr<stepper::Recorder> recorder;  // or null, if only a trace is
  std::shared_ptr<actors::Trace> trace;         // or null
  std::vector<Tensor> fetched;
  Failure failure;  // of the run
};

Steps record_run(Prepared& prepared, const StepOptions& options) {
  std::vector<std::string> fed;
  for (const auto& [port, value] : prepared.feeds) fed.push_back(port);
  const WatchedRun watched(*prepared.session);
  Steps steps;
  // An observer sees the nodes of this process only.
  if (!options.is_elsewhere())
    steps.recorder = std::make_shared<stepper::Recorder>(options.limit, fed,
                                                         watched.token());
  if (!options.trace.empty() || options.is_elsewhere())
    steps.trace = std::make_shared<actors::Trace>();
  prepared.session.keep(steps.recorder);
  prepared.session.keep(steps.trace);
  actors::RunOptions run;
  run.cancel = watched.token();
  run.observer = steps.recorder.get();
  run.trace = steps.trace.get();
  Result<std::vector<Tensor>> fetched = run_on_worker(prepared, run);
  if (fetched.ok()) steps.fetched = *std::move(fetched);
  steps.failure = watched.failure_of(fetched.status());
  return steps;
}

// Writes the steps and the page; returns the error of the page.
Failure show_steps(const StepOptions& options,
                   const std::vector<FetchName>& names,
                   const stepper::Recording& recording, const Steps& steps,
                   stepper::PlanListing plans) {
  auto front = describe_run(options, names, recording, steps.fetched,
                            steps.failure.status);
  front.plans = std::move(plans);
  if (options.json) {
    print_text(to_json(recording, front));
  } else if (options.html.empty()) {
    print_text(to_text(recording, front, options.filter));
  } else {  // the steps are on the page
    print_text(stepper::to_text(front.plans) + front.result);
  }
  if (recording.is_full) spdlog::warn("{}", front.notes.back());
  if (options.html.empty()) return {};
  return run_time_error(write_page(options.html, recording, front));
}

stepper::Recording recording_of(const Steps& steps,
                                const StepOptions& options) {
  if (steps.recorder != nullptr) return steps.recorder->take();
  auto [recording, omitted] =
      stepper::record_trace(*steps.trace, options.limit);
  if (omitted > 0)
    spdlog::warn("{} steps after the first {} are left out (--limit)", omitted,
                 recording.steps.size());
  return std::move(recording);
}

// What a trace does not have.
Status check_cluster(const StepOptions& options) {
  for (const auto& [name, is_given] :
       {std::pair("step --html", !options.html.empty()),
        std::pair("step --plan", options.plan)})
    if (is_given)
      TAGFLOW_RETURN_IF_ERROR(
          refuse_watching_cluster(options.signature.engine, name));
  return {};
}

Status check_filter(const StepOptions& options) {
  const stepper::StepFilter& filter = options.filter;
  if (filter.first > filter.last)
    return invalid_argument("[step] --from {} is after --to {}", filter.first,
                            filter.last);
  // Each step there says only what it changes, so none can be left out.
  if ((options.json || !options.html.empty()) &&
      filter != stepper::StepFilter())
    return invalid_argument(
        "[step] --nodes, --frame, --from, --to and --brief are for the text; "
        "{} has all steps",
        options.json ? "--json" : "--html");
  return {};
}

ExitCode step_graph(const StepOptions& options) {
  Status chosen = check_filter(options);
  if (chosen.ok()) chosen = check_cluster(options);
  if (!chosen.ok()) return report(usage_error(std::move(chosen)));
  Prepared prepared = prepare(options.signature);
  Failure failure = prepared.failure;
  Status distinct =
      check_distinct({{"--html", options.html}, {"--trace", options.trace}},
                     {{"GRAPH", options.signature.graph},
                      {"--costs", options.signature.costs}});
  if (!distinct.ok()) return report(usage_error(std::move(distinct)));
  if (failure.exit_code == ExitCode::kOk)
    failure = run_time_error(check_files(options));
  if (failure.exit_code != ExitCode::kOk) return report(failure);

  stepper::PlanListing plans;
  if (options.plan) {
    Result<stepper::PlanListing> listed = list_plans(prepared);
    if (!listed.ok()) return report(run_time_error(std::move(listed).status()));
    plans = *std::move(listed);
  }
  const Steps steps = record_run(prepared, options);
  // A cancelled run may go on for a moment; the session waits for it.
  if (!prepared.session.end(kLongPatience)) {
    report(steps.failure);
    spdlog::error(
        "there are no steps to show: a kernel that cannot be interrupted still "
        "runs");
    return steps.failure.exit_code;
  }
  const stepper::Recording recording = recording_of(steps, options);
  ExitCode code = ExitCode::kOk;
  const auto note = [&code](const Failure& wrong) {
    const ExitCode its = report(wrong);
    if (code == ExitCode::kOk) code = its;
  };
  // Else it never started.
  if (!recording.steps.empty() || steps.failure.exit_code == ExitCode::kOk)
    note(show_steps(options, prepared.names, recording, steps,
                    std::move(plans)));
  // A full recording ended the run.
  if (!recording.is_full) note(steps.failure);
  if (options.trace.empty()) return code;
  (void)flush_stdout();
  note(run_time_error(
      end_and_write_trace(prepared.session, *steps.trace, options.trace)));
  return code;
}

}  // namespace

void add_step_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<StepOptions>();
  // Every node fires, in the same order each time.
  options->signature.engine.passes = "none";
  options->signature.engine.workers = 1;
  CLI::App* step = app.add_subcommand("step", "show a run token by token");
  add_signature_options(*step, options->signature);
  add_output_option(*step, "--html", options->html,
                    "write a page for a browser that draws the graph and steps "
                    "through the run; needs Graphviz");
  step->add_option("--limit", options->limit,
                   "stop the run after so many steps; a run on a cluster goes "
                   "on, and the others are left out")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->capture_default_str();
  add_output_option(*step, "--trace", options->trace,
                    "write a trace for Perfetto or chrome://tracing");
  const std::string text = "Text";
  stepper::StepFilter& filter = options->filter;
  step->add_option(
          "--nodes", filter.nodes,
          "print only steps in which a matching node fires or gets a token")
      ->type_name("PATTERN")
      ->group(text);
  step->add_option(
          "--frame", filter.frames,
          "print only steps of matching frames, or iterations, as steps have "
          "them: \"while/0\"; \"root\" is outside loops")
      ->type_name("PATTERN")
      ->group(text);
  step->add_option("--from", filter.first, "the first step to print")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->group(text);
  step->add_option("--to", filter.last, "the last step to print")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->group(text);
  step->add_flag(
          "--brief", filter.is_brief,
          "print only what happens, without the ready nodes, the waiting "
          "nodes and the tokens")
      ->group(text);
  step->add_flag("--plan", options->plan,
                 "print the compiled plan before the steps: the nodes of each "
                 "frame, how many inputs they wait for, and where tokens go");
  step->add_flag("--json", options->json,
                 "print the steps, and with --plan the plan, as one JSON "
                 "object");
  step->callback([options, &exit_code] {
    options->signature.engine.keeps_stdout = options->json;
    // The order of a cluster's workers is that of their times.
    if (options->is_elsewhere() && options->signature.engine.workers == 1)
      options->signature.engine.workers = 0;
    exit_code = step_graph(*options);
  });
}

}  // namespace tagflow::apps
