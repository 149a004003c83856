// Many steps of one signature, in one session: `tagflow run --steps`.
#pragma once

#include <cstdint>

#include "actors/watch/trace.h"
#include "apps/common/training.h"
#include "apps/common/watched_run.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {

struct StepsOptions {
  int64_t steps = 0;  // in total, with those of the run that is resumed
  bool json = false;
  bool is_quiet = false;  // prints no results
  actors::RunOptions run;
};

// Runs them, prints the results of each as a line of JSON, or a line for each
// fetch, and saves what `training` says. `last` gets the results of the last
// step; they stay as they are where there was none left to run. Errors of the
// run, and of what cannot be printed or saved; Cancelled where a signal came
// between two steps, and the last one was saved.
Status run_steps(const Prepared& prepared, const StepsOptions& options,
                 const WatchedRun& watched, Training& training,
                 std::vector<Tensor>& last);

}  // namespace tagflow::apps
