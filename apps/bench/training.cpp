// Workloads: train steps. Each is one run: loss, gradients by all weights, and
// their updates in place by gradient descent.
//
//   mlp                  784-512-10 with relu, cross entropy
//   cnn                  two 3 x 3 convolutions of 32 and 64 channels, each
//                        with relu and a 2 x 2 pool, a dense layer, cross
//                        entropy, pictures of 28 x 28 x 1
//   lstm_backward_ratio  loss and gradients of an LSTM, over its loss alone; an
//                        LSTM's train step is lstm --train (recurrent.cpp)
//
// Medians over --repeats after one that is not counted, each the mean of 5
// runs; of the ratio the median of as many ratios, measured in turns.
#include "apps/bench/gradient_graphs.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

constexpr int kRuns = 5;

Result<PreparedRun> prepared(const Result<BenchGraph>& graph,
                             const BenchOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  return PreparedRun::make(*graph, session);
}

Result<Measurement> measure_step(std::string name, PictureModel model,
                                 int default_batch,
                                 const BenchOptions& options) {
  const int batch = options.batch > 0 ? options.batch : default_batch;
  TAGFLOW_ASSIGN(PreparedRun run,
                 prepared(make_train_step(model, batch), options));
  TAGFLOW_ASSIGN(const double seconds, run.seconds({}, options.repeats, kRuns));
  return Measurement{std::move(name),
                     seconds * 1e3,
                     "ms",
                     {{"batch", batch},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

}  // namespace

Result<Measurement> measure_mlp(const BenchOptions& options) {
  return measure_step("mlp", PictureModel::kMlp, 128, options);
}

Result<Measurement> measure_cnn(const BenchOptions& options) {
  return measure_step("cnn", PictureModel::kCnn, 64, options);
}

Result<Measurement> measure_lstm_backward_ratio(const BenchOptions& options) {
  const LstmSize size = lstm_size(options, 28);
  TAGFLOW_ASSIGN(PreparedRun forward,
                 prepared(make_lstm_train(size, StepPart::kLoss), options));
  TAGFLOW_ASSIGN(
      PreparedRun both,
      prepared(make_lstm_train(size, StepPart::kGradients), options));
  std::vector<double> ratios, forwards;
  for (int i = 0; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(const double alone, forward.seconds({}, 1, kRuns));
    TAGFLOW_ASSIGN(const double together, both.seconds({}, 1, kRuns));
    forwards.push_back(alone);
    ratios.push_back(together / alone);
  }
  return Measurement{"lstm_backward_ratio",
                     median(std::move(ratios)),
                     "ratio",
                     {{"batch", size.batch},
                      {"steps", size.steps},
                      {"inputs", size.inputs},
                      {"units", size.units},
                      {"ms_forward", median(std::move(forwards)) * 1e3},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

}  // namespace tagflow::apps
