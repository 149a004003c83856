// tagflow step: one run, token by token.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>

#include "apps/common/results.h"
#include "apps/common/terminal.h"
#include "apps/common/trace.h"
#include "apps/io/file.h"
#include "apps/stepper/recorder.h"
#include "apps/stepper/text.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {
namespace {

constexpr size_t kMaxSteps = 100'000;

struct StepOptions {
  SignatureOptions signature;
  size_t limit = 2000;
  std::string html;
  std::string trace;
  stepper::StepFilter filter;
  bool json = false;
};

// On the session's one worker, and no other thread: a lent one would leave
// heavy kernels to that worker, and take turns with it.
Result<std::vector<Tensor>> run_on_worker(const Prepared& prepared,
                                          const actors::RunOptions& run) {
  using Answer = Result<std::vector<Tensor>>;
  std::promise<Answer> promise;
  prepared.session->run_async(prepared.feeds, prepared.fetches,
                              prepared.targets, run,
                              [&](Answer answer, const actors::RunStats&) {
                                promise.set_value(std::move(answer));
                              });
  return promise.get_future().get();
}

stepper::Frontispiece describe_run(const StepOptions& options,
                                   const std::vector<FetchName>& names,
                                   const stepper::Recording& recording,
                                   const Result<std::vector<Tensor>>& fetched) {
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
  if (recording.is_full) {
    front.notes.push_back(
        fmt::format("the run was stopped after {} steps (--limit); what would "
                    "have come then is left out",
                    recording.steps.size()));
  } else if (fetched.ok()) {
    front.result = format_results(names, *fetched);
  } else {
    front.error = fetched.status().to_string();
  }
  return front;
}

Status write_page(const std::string& path, const stepper::Recording& recording,
                  const stepper::Frontispiece& front) {
  TAGFLOW_ASSIGN(const draw::Layout layout, draw::lay_out(recording.drawing));
  return io::write_file(path, to_page(recording, front, layout));
}

Failure step_graph(const StepOptions& options) {
  if (options.filter.first > options.filter.last) {
    return usage_error(invalid_argument("[step] --from {} is after --to {}",
                                        options.filter.first,
                                        options.filter.last));
  }
  Prepared prepared = prepare(options.signature);
  if (prepared.failure.exit_code != ExitCode::kOk) return prepared.failure;
  for (const std::string& path : {options.html, options.trace}) {
    Status status = path.empty() ? Status() : io::check_writable(path);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  std::vector<std::string> fed;
  for (const auto& [port, value] : prepared.feeds) fed.push_back(port);
  actors::RunOptions run;
  run.cancel.emplace();
  stepper::Recorder recorder(options.limit, fed, *run.cancel);
  actors::Trace trace;
  run.observer = &recorder;
  if (!options.trace.empty()) run.trace = &trace;
  const auto fetched = run_on_worker(prepared, run);
  // A run that was cut short may go on for a moment; the session waits for it.
  prepared.session.reset();
  const stepper::Recording recording = recorder.take();
  Status written;
  if (!options.trace.empty()) written = write_trace(trace, options.trace);

  // It never started.
  if (recording.steps.empty() && !fetched.ok()) {
    return run_time_error(fetched.status());
  }
  const auto front = describe_run(options, prepared.names, recording, fetched);
  if (written.ok() && !options.html.empty()) {
    written = write_page(options.html, recording, front);
  }
  const std::string text = options.json ? to_json(recording, front)
                           : options.html.empty()
                               ? to_text(recording, front, options.filter)
                               : front.result;
  print_text(text);
  if (!written.ok()) return run_time_error(std::move(written));
  if (recording.is_full) {
    spdlog::warn("{}", front.notes.back());
    return {};
  }
  return fetched.ok() ? Failure() : run_time_error(fetched.status());
}

}  // namespace

void add_step_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<StepOptions>();
  // Every node fires, in the same order each time.
  options->signature.engine.passes = "none";
  options->signature.engine.workers = 1;
  CLI::App* step = app.add_subcommand("step", "show a run token by token");
  add_signature_options(*step, options->signature);
  step->add_option("--html", options->html,
                   "write a page with the drawn graph, to be stepped through "
                   "in a browser; needs Graphviz")
      ->type_name("FILE");
  step->add_option("--limit", options->limit,
                   "stop the run after so many steps")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->capture_default_str();
  step->add_option("--trace", options->trace,
                   "write a trace for Perfetto or chrome://tracing")
      ->type_name("FILE");
  const std::string text = "Text";
  stepper::StepFilter& filter = options->filter;
  step->add_option("--nodes", filter.nodes,
                   "only steps in which such a node fires or gets a token")
      ->type_name("PATTERN")
      ->group(text);
  step->add_option("--frame", filter.frames,
                   "only steps of such a frame; that of no loop is \"root\"")
      ->type_name("PATTERN")
      ->group(text);
  step->add_option("--from", filter.first, "the first step to print")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->group(text);
  step->add_option("--to", filter.last, "the last step to print")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->group(text);
  step->add_flag("--brief", filter.is_brief,
                 "only what happens, not what is ready, waits, and where "
                 "tokens are")
      ->group(text);
  step->add_flag("--json", options->json, "print the steps as one JSON object");
  step->callback(
      [options, &exit_code] { exit_code = report(step_graph(*options)); });
}

}  // namespace tagflow::apps
