// A training that TensorBoard shows: half of x is taken away in each step.
//
//   x --> loss = sum x^2 --> gradient --> x - 0.25 gradient --> x, once more
//    \--> histogram     \--> scalar
//
// The event file is in out/summaries: tensorboard --logdir out/summaries
#include <cstdio>
#include <filesystem>

#include "actors/session/session.h"
#include "actors/watch/step_stats.h"
#include "actors/watch/summary_writer.h"
#include "actors/watch/trace.h"
#include "autodiff/gradients.h"
#include "graph/builder/builder.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

Status train(const std::string& folder) {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({4}));
  const Output loss = ops::reduce_sum(s.named("loss"), ops::square(s, x));
  const Outputs slopes = autodiff::dense_gradients(s, {loss}, {x});
  const Output next =
      ops::sub(s.named("next"), x, ops::mul(s, slopes[0], 0.25F));
  TAGFLOW_RETURN_IF_ERROR(s.status());

  TAGFLOW_ASSIGN(const auto session, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_ASSIGN(const auto writer, actors::SummaryWriter::open(folder));
  TAGFLOW_RETURN_IF_ERROR(writer->graph(graph));
  Tensor value = Tensor::vector<float>({1, -2, 3, -4});
  for (int64_t step = 1; step <= 20; ++step) {
    // The last step is watched: when its nodes ran, and what they made.
    actors::Trace trace;
    actors::OutputRecorder outputs;
    actors::RunOptions run;
    const bool is_watched = step == 20;
    if (is_watched) run.trace = &trace;
    if (is_watched) run.observer = &outputs;
    TAGFLOW_ASSIGN(
        const auto results,
        session->run({{"x", value}}, {loss.name(), next.name()}, {}, run));
    TAGFLOW_RETURN_IF_ERROR(
        writer->scalar("loss", results[0].item<float>().value(), step));
    TAGFLOW_RETURN_IF_ERROR(writer->histogram("x", value, step));
    value = results[1];
    if (is_watched)
      TAGFLOW_RETURN_IF_ERROR(writer->run_metadata(
          "step 20", actors::run_metadata(trace, &outputs), step));
  }
  TAGFLOW_RETURN_IF_ERROR(
      writer->text("about", "Half of `x` is taken away in each step.", 20));
  return writer->close();
}

}  // namespace

int main() {
  const std::string folder = "out/summaries";
  const Status status = train(folder);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return 1;
  }
  bool has_file = false;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    has_file |= file.path().string().find("tfevents") != std::string::npos;
  std::printf("20 steps are in %s\n", folder.c_str());
  return has_file ? 0 : 1;
}
