#include "apps/shared/training/training_summaries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/shared/training/trainer_parts.h"

namespace tagflow::training {

// The first step compiles what runs.
TrainingSummaries::TrainingSummaries(actors::Session& session,
                                     const Trainee& trainee, int64_t step)
    : session_(session),
      trainee_(trainee),
      profile_(step + 2, session.options().backend == nullptr) {}

Result<std::shared_ptr<TrainingSummaries>> TrainingSummaries::open(
    actors::Session& session, const Trainee& trainee, const std::string& folder,
    int64_t step) {
  const std::shared_ptr<TrainingSummaries> made(
      new TrainingSummaries(session, trainee, step));
  TAGFLOW_ASSIGN(made->train_, actors::SummaryWriter::open(folder + "/train"));
  TAGFLOW_RETURN_IF_ERROR(made->train_->graph(session.graph()));
  if (trainee.evaluation_batches > 0) {
    TAGFLOW_ASSIGN(made->test_, actors::SummaryWriter::open(folder + "/test"));
  }
  if (step == 0) return made;
  for (const auto& writer : {made->train_.get(), made->test_.get()})
    if (writer != nullptr) TAGFLOW_RETURN_IF_ERROR(writer->resume(step + 1));
  return made;
}

Status TrainingSummaries::add_metrics(actors::SummaryWriter& writer,
                                      int64_t step,
                                      std::span<const float> metrics) {
  const size_t count = std::min(metrics.size(), trainee_.step.metrics.size());
  for (size_t i = 0; i < count; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        writer.scalar(trainee_.step.metrics[i].name, metrics[i], step));
  return {};
}

Status TrainingSummaries::after_step(int64_t step,
                                     std::span<const float> metrics) {
  TAGFLOW_RETURN_IF_ERROR(add_metrics(*train_, step, metrics));
  return profile_.after_step(step, *train_);
}

actors::RunOptions TrainingSummaries::options_of(int64_t step,
                                                 actors::RunOptions run) {
  return profile_.options_of(step, std::move(run));
}

Status TrainingSummaries::add(int64_t step, const Tensor& summary) {
  TAGFLOW_ASSIGN(const std::string bytes, summary.item<std::string>());
  return train_->summary(bytes, step);
}

Status TrainingSummaries::after_report(int64_t step,
                                       const actors::RunOptions& run) {
  const std::vector<std::string> names =
      tensors_of({&trainee_.numbers, &trainee_.spreads});
  if (names.empty()) return {};
  TAGFLOW_ASSIGN(const std::vector<Tensor> values,
                 session_.run({}, names, {}, run));
  const size_t numbers = trainee_.numbers.size();
  for (size_t i = 0; i < numbers; ++i) {
    TAGFLOW_ASSIGN(const float number, values[i].item<float>());
    TAGFLOW_RETURN_IF_ERROR(
        train_->scalar(trainee_.numbers[i].name, number, step));
  }
  for (size_t i = 0; i < trainee_.spreads.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(
        train_->histogram(trainee_.spreads[i].name, values[numbers + i], step));
  return {};
}

Status TrainingSummaries::after_evaluation(int64_t step,
                                           std::span<const float> metrics) {
  return add_metrics(*test_, step, metrics);
}

Status TrainingSummaries::flush() {
  TAGFLOW_RETURN_IF_ERROR(train_->flush());
  return test_ == nullptr ? Status() : test_->flush();
}

}  // namespace tagflow::training
