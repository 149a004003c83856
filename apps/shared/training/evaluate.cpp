#include "apps/shared/training/trainer.h"
#include "apps/shared/training/trainer_parts.h"

namespace tagflow::training {

std::vector<std::string> tensors_of(
    std::initializer_list<const std::vector<Metric>*> lists) {
  std::vector<std::string> tensors;
  for (const std::vector<Metric>* metrics : lists)
    for (const Metric& metric : *metrics) tensors.push_back(metric.tensor);
  return tensors;
}

Result<actors::Callable> make_callable(actors::Session& session,
                                       const Phase& phase,
                                       const std::vector<std::string>& targets,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> fetches = tensors_of({&phase.metrics});
  fetches.insert(fetches.end(), more.begin(), more.end());
  return session.make_callable(phase.feeds, fetches, targets);
}

Result<std::vector<float>> run_batch(const actors::Callable& call,
                                     const Phase& phase,
                                     std::span<const Tensor> batch,
                                     const actors::RunOptions& run,
                                     std::vector<Tensor>* more) {
  TAGFLOW_ASSIGN(const std::vector<Tensor> results, call(batch, run));
  std::vector<float> values;
  const size_t metrics = phase.metrics.size();
  if (more != nullptr) more->assign(results.begin() + metrics, results.end());
  for (size_t i = 0; i < metrics; ++i) {
    const auto value = results[i].item<float>();
    if (!value.ok())
      return Status(value.status())
          .with_prefix(fmt::format("[{}] ", phase.metrics[i].name));
    values.push_back(*value);
  }
  return values;
}

int64_t count_rows(const Phase& phase, std::span<const Tensor> batch) {
  if (phase.rows > 0) return phase.rows;
  return batch.empty() || batch[0].rank() == 0 ? 1 : batch[0].dim(0);
}

Result<std::vector<float>> evaluate(actors::Session& session,
                                    const Trainee& trainee,
                                    const actors::RunOptions& run) {
  const Phase& phase = trainee.evaluation;
  TAGFLOW_ASSIGN(const actors::Callable call,
                 make_callable(session, phase, {}));
  Means means(phase.metrics.size());
  for (int64_t i = 0; i < trainee.evaluation_batches; ++i) {
    TAGFLOW_ASSIGN(const std::vector<Tensor> batch, phase.batch(i));
    auto values = run_batch(call, phase, batch, run);
    if (!values.ok())
      return std::move(values).status().with_prefix("[evaluation] ");
    means.add(*values, count_rows(phase, batch));
  }
  return means.take();
}

}  // namespace tagflow::training
