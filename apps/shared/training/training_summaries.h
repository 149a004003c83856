// The event files of a training, for TensorBoard.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "actors/watch/summary_writer.h"
#include "apps/shared/runs/step_profile.h"
#include "apps/shared/training/trainer.h"

namespace tagflow::training {

// FOLDER/train has the graph, the metrics of the steps, what the nodes did in
// the second step of this run, and what the trainee names besides; FOLDER/test
// has the metrics of evaluations, by the same tags, so that a viewer draws both
// as one chart. A resumed training adds files.
//
// Methods return errors of writing and of runs. Thread-compatible; runs refer
// to it.
class TrainingSummaries {
 public:
  // Both must outlive it. `step` is the last one before this run.
  static Result<std::shared_ptr<TrainingSummaries>> open(
      actors::Session& session, const Trainee& trainee,
      const std::string& folder, int64_t step);

  // The options of that step, which may have to be watched.
  actors::RunOptions options_of(int64_t step, actors::RunOptions run);
  Status after_step(int64_t step, std::span<const float> metrics);
  // What the trainee's `summary` has given in a step.
  Status add(int64_t step, const Tensor& summary);
  // Runs the trainee's `numbers` and `spreads`.
  Status after_report(int64_t step, const actors::RunOptions& run);
  Status after_evaluation(int64_t step, std::span<const float> metrics);
  Status flush();

 private:
  TrainingSummaries(actors::Session& session, const Trainee& trainee,
                    int64_t step);
  Status add_metrics(actors::SummaryWriter& writer, int64_t step,
                     std::span<const float> metrics);

  actors::Session& session_;
  const Trainee& trainee_;
  apps::StepProfile profile_;
  std::unique_ptr<actors::SummaryWriter> train_, test_;
};

}  // namespace tagflow::training
