// What the nodes of one step did, for TensorBoard.
#pragma once

#include <cstdint>

#include "actors/options.h"
#include "actors/watch/step_stats.h"
#include "actors/watch/summary_writer.h"
#include "actors/watch/trace.h"

namespace tagflow::apps {

// Watches one of the steps of a session: how long its nodes took, and how many
// bytes they output. Runs refer to it. Thread-compatible.
class StepProfile {
 public:
  // Without memory, there are only the times: of nodes in other processes.
  StepProfile(int64_t step, bool has_memory)
      : step_(step), has_memory_(has_memory) {}

  // The options of a step. One that has a trace already is not watched; an
  // observer that it has stays.
  actors::RunOptions options_of(int64_t step, actors::RunOptions options);
  // Writes it, if the step was watched. Errors of writing. REQUIRES: the step
  // is over, and options_of() was called for it last
  Status after_step(int64_t step, actors::SummaryWriter& writer);

 private:
  const int64_t step_;
  const bool has_memory_;
  actors::Trace trace_;
  actors::OutputRecorder outputs_;
  bool is_watching_ = false;
};

}  // namespace tagflow::apps
