// Many steps of one signature, in one session: `tagflow run --steps`.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/watch/trace.h"
#include "apps/shared/runs/run_figures.h"
#include "apps/shared/runs/step_checkpoints.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/tagflow/run_summaries.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {

struct StepsOptions {
  int64_t steps = 0;  // in total, including those of the resumed run
  bool json = false;
  bool is_quiet = false;  // prints no results
  actors::RunOptions run;
  std::shared_ptr<RunFigures> figures = nullptr;  // counts the steps
  RunSummaries* summaries = nullptr;              // null: none
};

// Runs the steps, prints the results of each as a line of JSON, or a line for
// each fetch, and saves as `checkpoints` requires. `last` receives the results
// of the last step, and is unchanged if no step was left to run. Returns
// errors of running, printing and saving, and Cancelled if a signal came
// between two steps, and the last one was saved.
Status run_steps(const Prepared& prepared, const StepsOptions& options,
                 const WatchedRun& watched, StepCheckpoints& checkpoints,
                 std::vector<Tensor>& last);

}  // namespace tagflow::apps
