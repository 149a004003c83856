#include "apps/tagflow/steps.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/progress.h"
#include "apps/tagflow/model/results.h"

namespace tagflow::apps {
namespace {

// Whether printed lines would mix with the progress line.
bool prints_on_terminal(const Prepared& prepared, const StepsOptions& options) {
  return !options.is_quiet && !prepared.names.empty() &&
         isatty(STDOUT_FILENO) == 1;
}

// Runs until all steps are done, or a signal comes.
Status run_each(const Prepared& prepared, const StepsOptions& options,
                const WatchedRun& watched, StepCheckpoints& checkpoints,
                std::vector<Tensor>& last) {
  std::vector<Tensor> values;
  TAGFLOW_ASSIGN(const actors::Callable call, make_callable(prepared, values));
  Progress progress("step", checkpoints.last_step(), options.steps,
                    is_terminal() && !prints_on_terminal(prepared, options));
  for (int64_t step = checkpoints.last_step() + 1;
       step <= options.steps && !watched.is_interrupted(); ++step) {
    for (const LoadedFeeds::ByRows& feed : prepared.by_rows) {
      auto rows =
          feed.rows.at(step, [&watched] { return watched.is_interrupted(); });
      // The step has not begun, so this counts as a signal between two steps.
      if (rows.status().code() == Code::kCancelled) return {};
      TAGFLOW_ASSIGN(values[feed.feed], std::move(rows));
    }
    if (options.figures != nullptr) options.figures->steps.on_begin();
    auto results =
        call(values, options.summaries == nullptr
                         ? options.run
                         : options.summaries->options_of(step, options.run));
    if (options.figures != nullptr) {
      options.figures->steps.on_end(results.status().code());
      if (results.ok()) options.figures->on_step_after_restart();
    }
    if (!results.ok())
      return std::move(results).status().with_prefix(
          fmt::format("[step {}] ", step));
    last = std::move(results).value();
    if (options.summaries != nullptr)
      TAGFLOW_RETURN_IF_ERROR(options.summaries->after_step(step, last));
    if (!options.is_quiet) {
      print_text(options.json ? format_step_json(step, prepared.names, last)
                              : format_step(step, prepared.names, last));
      // Before the save, since a run that is killed after the save resumes
      // behind this step.
      TAGFLOW_RETURN_IF_ERROR(flush_stdout());
    }
    progress.after(step);
    checkpoints.after_step(step);
  }
  return {};
}

}  // namespace

Status run_steps(const Prepared& prepared, const StepsOptions& options,
                 const WatchedRun& watched, StepCheckpoints& checkpoints,
                 std::vector<Tensor>& last) {
  if (checkpoints.last_step() >= options.steps)
    spdlog::info("nothing is left to do: --steps {} includes the resumed steps",
                 options.steps);
  Status status = run_each(prepared, options, watched, checkpoints, last);
  // At the end of the data, nothing of the step has run that needs an element.
  if (status.code() == Code::kOutOfRange && checkpoints.is_saving()) {
    const Status saved = checkpoints.finish();
    if (!saved.ok()) {
      spdlog::warn("{}", saved.to_string());
      return status;
    }
    return error(status.code(), "{}; the state after step {} is saved",
                 status.message(), checkpoints.last_step());
  }
  if (!status.ok()) {
    checkpoints.stop();
    return status;
  }
  TAGFLOW_RETURN_IF_ERROR(checkpoints.finish());
  if (checkpoints.last_step() >= options.steps) return {};
  return error(Code::kCancelled, "[run] it ended after step {} of {}{}",
               checkpoints.last_step(), options.steps,
               checkpoints.is_saving() ? ", which is saved" : "");
}

}  // namespace tagflow::apps
