#include "apps/shared/runs/step_profile.h"

#include <fmt/format.h>

namespace tagflow::apps {

actors::RunOptions StepProfile::options_of(int64_t step,
                                           actors::RunOptions options) {
  is_watching_ = step == step_ && options.trace == nullptr;
  if (!is_watching_) return options;
  options.trace = &trace_;
  if (options.observer == nullptr && has_memory_) options.observer = &outputs_;
  return options;
}

Status StepProfile::after_step(int64_t step, actors::SummaryWriter& writer) {
  if (!is_watching_) return {};
  return writer.run_metadata(
      fmt::format("step {}", step),
      actors::run_metadata(trace_, has_memory_ ? &outputs_ : nullptr), step);
}

}  // namespace tagflow::apps
