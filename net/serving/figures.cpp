#include "net/serving/figures.h"

namespace tagflow::net::serving {

std::shared_ptr<ModelFigures> ServingFigures::of(const std::string& model) {
  const std::lock_guard lock(mutex_);
  auto& figures = models_[model];
  if (figures == nullptr) figures = std::make_shared<ModelFigures>();
  return figures;
}

void ServingFigures::write(MetricText& text) const {
  using Type = MetricText::Type;
  const std::lock_guard lock(mutex_);
  text.begin("tagflow_serving_requests_total", Type::kCounter,
             "Requests that were answered, by the code of the answer.");
  for (const auto& [model, figures] : models_) {
    const auto numbers = figures->requests.numbers();
    for (size_t code = 0; code < numbers.ended.size(); ++code)
      if (numbers.ended[code] > 0)
        text.add({{"model", model}, {"code", code_name(Code(code))}},
                 numbers.ended[code]);
  }
  text.begin("tagflow_serving_running", Type::kGauge,
             "Requests that wait or run.");
  for (const auto& [model, figures] : models_)
    text.add({{"model", model}}, figures->requests.numbers().running());
  text.begin("tagflow_serving_latency_seconds", Type::kHistogram,
             "From a request's tensors to those of its answer.");
  for (const auto& [model, figures] : models_)
    figures->latency.write(text, {{"model", model}});
  text.begin("tagflow_serving_batch_rows", Type::kHistogram,
             "Rows of the batches that ran, without their padding.");
  for (const auto& [model, figures] : models_)
    figures->batches.write(text, {{"model", model}});
}

}  // namespace tagflow::net::serving
